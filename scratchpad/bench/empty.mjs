// What Node itself costs: a module with one value.
export const nothing = undefined
