// Nothing: what Node itself costs.
export {}
