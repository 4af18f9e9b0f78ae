/**
 * Well-known credential formats: the kept rule set of spec section 9, high confidence only.
 *
 * One table, written from what issuers publish about their tokens. A rule belongs here only if a text that fits it is
 * hardly ever anything else: a prefix of the issuer with the length that its tokens have, or a label that says what
 * follows. Words such as `password` in prose never hide anything.
 *
 * Rules for rules: a pattern begins at its anchor (what stands before is looked at by `(?<!…)` or `(?<=…)`), repeats
 * single classes with an upper bound, and nests no repetition, so that one attempt costs a bounded number of steps.
 * A group holds the part that is secret and ends the match; without a group the whole match is secret.
 */

/** Longest text that one pattern reads; `longest` of a rule that spans more. */
export const MAX_TOKEN = 512

/** One format. */
export interface CredentialFormat {
  readonly name: string
  /** Who issues it, and so who describes it. */
  readonly source: string
  /** Texts of at least three characters, one of which each occurrence holds where the pattern begins. */
  readonly anchors: ReadonlyArray<string>
  /** Sticky. */
  readonly pattern: RegExp
  /** A token without white space whose beginning is worth hiding when a text ends in it. */
  readonly token: boolean
  /** What begins with the pattern and has no end that a pattern finds. */
  readonly body?: "pem"
}

/** A token stands free: no letter, digit or underscore before it. */
const free = "(?<![A-Za-z0-9_])"
/** The run of its characters ends: of letters and digits, and of the alphabet of base64url. */
const endOfWord = "(?![A-Za-z0-9])"
const endOfUrl = "(?![A-Za-z0-9_-])"
const escape = (text: string): string => text.replace(/[.\\+*?^$()[\]{}|/]/g, "\\$&")

const token = (
  name: string,
  source: string,
  anchors: string | ReadonlyArray<string>,
  rest: string
): CredentialFormat => {
  const list = typeof anchors === "string" ? [anchors] : anchors
  return {
    name,
    source,
    anchors: list,
    pattern: new RegExp(`${free}(?:${list.map(escape).join("|")})${rest}`, "y"),
    token: true
  }
}
/** Exactly, or from `least` to `most`, letters and digits. */
const word = (least: number, most = least): string => `[A-Za-z0-9]{${least},${most}}${endOfWord}`
/** The same in the alphabet of base64url. */
const url = (least: number, most = least): string => `[A-Za-z0-9_-]{${least},${most}}${endOfUrl}`
const hex = (length: number): string => `[0-9a-f]{${length}}${endOfWord}`

const labelled = (
  name: string,
  source: string,
  anchors: ReadonlyArray<string>,
  between: string,
  secret: string
): CredentialFormat => ({
  name,
  source,
  anchors,
  pattern: new RegExp(`(?:${anchors.map(escape).join("|")})${between}(${secret})`, "y"),
  token: false
})

const hexDigits = [..."0123456789abcdef"]
/** What stands between a label and its value in an assignment, JSON, YAML or a header. */
const assigned = String.raw`[\\"']{0,3}\s{0,4}[:=]>?\s{0,4}[\\"']{0,3}`

/** The rule set. */
export const credentialFormats: ReadonlyArray<CredentialFormat> = [
  token("AWS access key id", "Amazon Web Services", ["AKIA", "ASIA", "ABIA", "ACCA"], `[A-Z2-7]{16}${endOfWord}`),
  labelled(
    "AWS secret access key",
    "Amazon Web Services",
    ["secret_access_key", "SECRET_ACCESS_KEY", "ecretAccessKey"],
    assigned,
    "[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
  ),
  token("GitHub token", "GitHub", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], word(36, 255)),
  token("GitHub fine-grained token", "GitHub", "github_pat_", "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}(?![A-Za-z0-9_])"),
  token(
    "GitLab token",
    "GitLab",
    ["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-"],
    `(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,300}(?:\\.[0-9a-z]{2}\\.[0-9a-z]{7,9})?${endOfUrl}`
  ),
  token(
    "Slack token",
    "Slack",
    ["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
    `(?=[A-Za-z-]{0,8}[0-9])[A-Za-z0-9-]{20,300}(?![A-Za-z0-9-])`
  ),
  {
    name: "Slack webhook",
    source: "Slack",
    anchors: ["hooks.slack.com/"],
    pattern:
      /hooks\.slack\.com\/(?:services|workflows|triggers)\/([A-Z][A-Z0-9]{5,15}\/[A-Za-z0-9]{5,24}\/[A-Za-z0-9/]{20,80})/y,
    token: false
  },
  token("Stripe key", "Stripe", ["sk_live_", "rk_live_", "sk_test_", "rk_test_"], word(20, 250)),
  token("Stripe webhook secret", "Stripe", "whsec_", "[A-Za-z0-9+/]{32,64}(?![A-Za-z0-9+/])"),
  token("OpenAI key", "OpenAI", ["sk-proj-", "sk-svcacct-", "sk-admin-"], `(?=[A-Za-z_-]{0,60}[0-9])${url(40, 300)}`),
  token(
    "OpenAI legacy key",
    "OpenAI",
    "sk-",
    `(?:[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{48})${endOfUrl}`
  ),
  token("DeepSeek key", "DeepSeek", "sk-", `[0-9a-f]{32}${endOfUrl}`),
  token("OpenRouter key", "OpenRouter", "sk-or-v1-", hex(64)),
  token("Anthropic key", "Anthropic", "sk-ant-", `(?=[A-Za-z_-]{0,30}[0-9])${url(32, 300)}`),
  token("Google API key", "Google", "AIza", url(35)),
  token("Google OAuth client secret", "Google", "GOCSPX-", url(28)),
  token("Google OAuth access token", "Google", "ya29.", url(40, MAX_TOKEN)),
  token("npm token", "npm", "npm_", word(36)),
  token("PyPI token", "PyPI", ["pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"], url(50, MAX_TOKEN)),
  token("RubyGems key", "RubyGems", "rubygems_", hex(48)),
  token("crates.io token", "crates.io", "cio", word(32)),
  token("Docker Hub token", "Docker", ["dckr_pat_", "dckr_oat_"], url(27, 40)),
  token("SendGrid key", "SendGrid", "SG.", `[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}${endOfUrl}`),
  token(
    "Twilio API key",
    "Twilio",
    hexDigits.map((digit) => `SK${digit}`),
    hex(31)
  ),
  token("Mailgun key", "Mailgun", "key-", hex(32)),
  token(
    "JSON Web Token",
    "RFC 7519",
    "eyJ",
    `[A-Za-z0-9_-]{10,4096}\\.eyJ[A-Za-z0-9_-]{4,8192}\\.(?:[A-Za-z0-9_-]{16,2048})?${endOfUrl}`
  ),
  {
    name: "Private key block",
    source: "RFC 7468, OpenSSH, OpenPGP",
    anchors: ["-----BEGIN "],
    pattern: /-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----/y,
    token: false,
    body: "pem"
  },
  token("age secret key", "age", "AGE-SECRET-KEY-1", `[0-9A-Z]{58}${endOfWord}`),
  {
    name: "Telegram bot token",
    source: "Telegram",
    anchors: [":AA"],
    pattern: /(?<=(?<![A-Za-z0-9])[0-9]{8,10}):(AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])/y,
    token: false
  },
  {
    name: "Discord webhook",
    source: "Discord",
    anchors: ["/api/webhooks/"],
    pattern: /\/api\/webhooks\/[0-9]{15,20}\/([A-Za-z0-9_-]{60,80})(?![A-Za-z0-9_-])/y,
    token: false
  },
  token("DigitalOcean token", "DigitalOcean", ["dop_v1_", "doo_v1_", "dor_v1_"], hex(64)),
  token("Hugging Face token", "Hugging Face", "hf_", word(34)),
  token("Replicate token", "Replicate", "r8_", word(37)),
  token("Groq key", "Groq", "gsk_", word(52)),
  token("xAI key", "xAI", "xai-", word(80)),
  token("Perplexity key", "Perplexity", "pplx-", word(48)),
  token("LangSmith key", "LangChain", ["lsv2_pt_", "lsv2_sk_"], `[0-9a-f]{32}_[0-9a-f]{10}${endOfWord}`),
  token("Shopify token", "Shopify", ["shpat_", "shpca_", "shppa_", "shpss_"], `[0-9a-fA-F]{32}${endOfWord}`),
  token("Databricks token", "Databricks", "dapi", `[0-9a-f]{32}(?:-[0-9])?${endOfWord}`),
  token("Atlassian token", "Atlassian", "ATATT3", "[A-Za-z0-9_=-]{60,400}(?![A-Za-z0-9_=-])"),
  token("Linear key", "Linear", "lin_api_", word(40)),
  token("Notion token", "Notion", "ntn_", word(40, 60)),
  token("Figma token", "Figma", "figd_", url(40, 60)),
  token("Postman key", "Postman", "PMAK-", `[0-9a-f]{24}-[0-9a-f]{34}${endOfWord}`),
  token("Sentry token", "Sentry", "sntryu_", hex(64)),
  token("Grafana token", "Grafana", "glsa_", `[A-Za-z0-9]{32}_[0-9a-f]{8}${endOfWord}`),
  token("New Relic key", "New Relic", "NRAK-", `[A-Z0-9]{27}${endOfWord}`),
  token("Supabase token", "Supabase", "sbp_", hex(40)),
  token("Vault token", "HashiCorp", ["hvs.", "hvb."], url(90, 300)),
  token(
    "Doppler token",
    "Doppler",
    ["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."],
    `(?:[a-z0-9_-]{2,35}\\.)?${word(40, 44)}`
  ),
  labelled("Azure storage key", "Microsoft Azure", ["AccountKey="], "", "[A-Za-z0-9+/]{86}=="),
  labelled("Azure shared access key", "Microsoft Azure", ["SharedAccessKey="], "", "[A-Za-z0-9+/]{43}="),
  {
    name: "Password in a URL",
    source: "RFC 3986",
    anchors: ["://"],
    // Not the stand-ins of templates and manuals; a password with any of the marks below is written in percent form.
    pattern:
      /(?<=[A-Za-z0-9+.-]):\/\/[^\s/?#@:"'`<>[\]{}()|\\^$*%]{0,128}:(?!(?:pass(?:word|wd)?|pwd|secret|token|x+|\.{3})@)([^\s/?#@:"'`<>[\]{}()|\\^$*]{3,256})(?=@[A-Za-z0-9_[])/iy,
    token: false
  }
]
