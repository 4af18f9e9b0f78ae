/** The version of sigil. A test holds it equal to the one in package.json; `bin.ts` prints it before anything loads. */
export const VERSION = "0.1.0"
