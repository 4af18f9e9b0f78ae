/**
 * The formats that texts of forms may have (K section 9.14), each as a test that takes time linear in the text.
 */

/** The formats of MCP's string schema. */
export const formats = ["email", "uri", "date", "date-time"] as const

/** One of them. */
export type Format = (typeof formats)[number]

/** What is expected, for a person. */
export const formatTexts: { readonly [format in Format]: string } = {
  email: "an e-mail address such as ann@example.com",
  uri: "an address with its scheme, such as https://example.com/",
  date: "a date such as 2026-01-31",
  "date-time": "a date and time with its zone, such as 2026-01-31T18:30:00Z"
}

const mailbox = /^[^\s@"(),:;<>[\\\]]{1,64}@([A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,16})$/
// RFC 3986 section 3.1; letters of other scripts are left to the server, white space and quotes never are.
const address = /^[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\s<>"{}|\\^`]+$/
const day = /^(\d{4})-(\d{2})-(\d{2})$/
// RFC 3339 section 5.6.
const moment =
  /^(\d{4}-\d{2}-\d{2})[Tt ]([01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** Whether the calendar has this day. */
const isDay = (text: string): boolean => {
  const [, year, month, date] = (day.exec(text) ?? []).map(Number)
  if (year === undefined || month === undefined || date === undefined) return false
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
  return date >= 1 && date <= (days[month - 1] ?? 0)
}

const isMailbox = (text: string): boolean => {
  const domain = mailbox.exec(text)?.[1]
  return domain !== undefined && !domain.split(".").some((label) => label.startsWith("-") || label.endsWith("-"))
}

/** Whether a text has the format. */
export const hasFormat = (format: Format, text: string): boolean => {
  switch (format) {
    case "email":
      return isMailbox(text)
    case "uri":
      return address.test(text) && URL.canParse(text)
    case "date":
      return isDay(text)
    case "date-time":
      return isDay(moment.exec(text)?.[1] ?? "")
  }
}
