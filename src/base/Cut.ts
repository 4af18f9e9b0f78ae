/**
 * The first characters of a text, as a text of their own.
 *
 * `slice` alone keeps the whole original in memory for as long as the piece lives: a hundred kept words of a hundred
 * large messages would hold all of those messages. Whatever is kept of what a server sent is cut here.
 */

/** At most `characters` UTF-16 units; a character that would be cut in two is replaced by U+FFFD. */
export const cut = (text: string, characters: number): string => Buffer.from(text.slice(0, characters)).toString()
