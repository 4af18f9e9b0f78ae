import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { credentialFormats } from "../../src/policy/CredentialFormats.ts"
import { finds, openFrom, spans } from "../../src/policy/CredentialScan.ts"

// No sample is written in one piece: scanners of repositories would take it for a real one.
const mixed = (length: number): string => "aB3dE5gH7jK9mN1pQ2".repeat(20).slice(0, length)
const lower = (length: number): string => "0a1b2c3d4e5f6789".repeat(20).slice(0, length)
const upper = (length: number): string => "Q2W3E4R5T6Y7U".repeat(20).slice(0, length)

/** Of each format: what begins it, what it goes on with, and texts that are nearly it. */
const samples: {
  readonly [name: string]: { readonly is: ReadonlyArray<string>; readonly not: ReadonlyArray<string> }
} = {
  "AWS access key id": {
    is: ["AKIA", "ASIA", "ABIA", "ACCA"].map((prefix) => prefix + upper(16)),
    not: [`AKIA${upper(15)}`, `AKIA${upper(17)}`, `AKIA${lower(16)}`, `xAKIA${upper(16)}`, `AKIA${"Q1".repeat(8)}`]
  },
  "AWS secret access key": {
    is: [
      `aws_secret_access_key = ${mixed(40)}`,
      `AWS_SECRET_ACCESS_KEY=${mixed(40)}`,
      `"SecretAccessKey": "${mixed(40)}"`
    ],
    not: [
      `commit ${lower(40)}`,
      `aws_secret_access_key = ${mixed(39)}`,
      `secret_access_key: ${mixed(41)}`,
      "aws_secret_access_key = <yours>"
    ]
  },
  "GitHub token": {
    is: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map((prefix) => prefix + mixed(36)),
    not: [`ghp_${mixed(35)}`, `ghx_${mixed(36)}`, `Ghp_${mixed(36)}`, `aghp_${mixed(36)}`, `ghp-${mixed(36)}`]
  },
  "GitHub fine-grained token": {
    is: [`github_pat_${mixed(22)}_${mixed(59)}`],
    not: [`github_pat_${mixed(22)}_${mixed(58)}`, `github_pat_${mixed(82)}`, "github_pat_token_of_the_user"]
  },
  "GitLab token": {
    is: [`glpat-${mixed(20)}`, `glpat-${mixed(27)}.01.${lower(9)}`, `glrt-${mixed(20)}`],
    not: [`glpat-${mixed(19)}`, "glpat-your-personal-access-token", `xglpat-${mixed(20)}`]
  },
  "Slack token": {
    is: [`xoxb-${"1234567890"}-${mixed(24)}`, `xapp-1-A${upper(9)}-123-${lower(64)}`],
    not: ["xoxb-your-token-goes-right-here", `xoxz-1234567890-${mixed(24)}`, "xoxb-123"]
  },
  "Slack webhook": {
    is: [`https://hooks.slack.com/services/T${upper(8)}/B${upper(8)}/${mixed(24)}`],
    not: [
      "https://hooks.slack.com/services/T/B/x",
      "https://hooks.slack.com/docs",
      `https://slack.com/services/T${upper(8)}`
    ]
  },
  "Stripe key": {
    is: ["sk_live_", "rk_live_", "sk_test_"].map((prefix) => prefix + mixed(24)),
    not: [`sk_live_${mixed(19)}`, `pk_live_${mixed(24)}`, "sk_live_key_of_the_account", `task_live_${mixed(24)}`]
  },
  "Stripe webhook secret": {
    is: [`whsec_${mixed(32)}`],
    not: [`whsec_${mixed(31)}`, "whsec_your_signing_secret_goes_here_please"]
  },
  "OpenAI key": {
    is: [`sk-proj-${mixed(48)}`, `sk-svcacct-${mixed(60)}`],
    not: [`sk-proj-${mixed(39)}`, "sk-proj-this-is-only-the-name-of-some-long-branch-or-other", `xsk-proj-${mixed(48)}`]
  },
  "OpenAI legacy key": {
    is: [`sk-${mixed(48)}`, `sk-${mixed(20)}T3BlbkFJ${mixed(20)}`],
    not: [`sk-${mixed(47)}`, `sk-${mixed(49)}`, `task-${mixed(48)}`, `sk-${"a".repeat(48)}`]
  },
  "DeepSeek key": { is: [`sk-${lower(32)}`], not: [`sk-${lower(31)}`, `sk-${lower(33)}`, `disk-${lower(32)}`] },
  "OpenRouter key": { is: [`sk-or-v1-${lower(64)}`], not: [`sk-or-v1-${lower(63)}`, `sk-or-v2-${lower(64)}`] },
  "Anthropic key": {
    is: [`sk-ant-api03-${mixed(93)}AA`, `sk-ant-oat01-${mixed(60)}`],
    not: [`sk-ant-${mixed(20)}`, "sk-ant-this-is-only-a-long-name-without-digits", `risk-ant-${mixed(90)}`]
  },
  "Google API key": { is: [`AIza${mixed(35)}`], not: [`AIza${mixed(34)}`, `AIza${mixed(36)}`, `aiza${mixed(35)}`] },
  "Google OAuth client secret": { is: [`GOCSPX-${mixed(28)}`], not: [`GOCSPX-${mixed(27)}`, `GOCSPX_${mixed(28)}`] },
  "Google OAuth access token": { is: [`ya29.${mixed(120)}`], not: [`ya29.${mixed(39)}`, `maya29.${mixed(120)}`] },
  "npm token": {
    is: [`npm_${mixed(36)}`],
    not: ["npm_config_registry", `npm_${mixed(35)}`, `npm_${mixed(37)}`, `pnpm_${mixed(36)}`]
  },
  "PyPI token": {
    is: [`pypi-AgEIcHlwaS5vcmc${mixed(70)}`],
    not: [`pypi-${mixed(80)}`, `pypi-AgEIcHlwaS5vcmc${mixed(40)}`]
  },
  "RubyGems key": { is: [`rubygems_${lower(48)}`], not: [`rubygems_${lower(47)}`, "rubygems_version"] },
  "crates.io token": { is: [`cio${mixed(32)}`], not: [`cio${mixed(31)}`, `cio${mixed(33)}`, `pcio${mixed(32)}`] },
  "Docker Hub token": { is: [`dckr_pat_${mixed(27)}`], not: [`dckr_pat_${mixed(26)}`, `dckr_foo_${mixed(27)}`] },
  "SendGrid key": {
    is: [`SG.${mixed(22)}.${mixed(43)}`],
    not: [`SG.${mixed(21)}.${mixed(43)}`, `SG.${mixed(22)}.${mixed(44)}`, `MSG.${mixed(22)}.${mixed(43)}`]
  },
  "Twilio API key": {
    is: [`SK${lower(32)}`],
    not: [`SK${lower(31)}`, `SK${lower(33)}`, `SK${upper(32)}`, `TASK${lower(32)}`]
  },
  "Mailgun key": { is: [`key-${lower(32)}`], not: [`key-${lower(31)}`, `monkey-${lower(32)}`, "key-value-store"] },
  "JSON Web Token": {
    is: [`eyJ${mixed(33)}.eyJ${mixed(40)}.${mixed(43)}`, `eyJ${mixed(17)}.eyJ${mixed(20)}.`],
    not: [
      `eyJ${mixed(33)}`,
      `eyJ${mixed(33)}.${mixed(40)}.${mixed(43)}`,
      `keyJ${mixed(33)}.eyJ${mixed(40)}.${mixed(43)}`
    ]
  },
  "Private key block": {
    is: [
      `-----BEGIN PRIVATE KEY-----\n${mixed(64)}\n-----END PRIVATE KEY-----`,
      `-----BEGIN RSA PRIVATE KEY-----\\n${mixed(64)}\\n-----END RSA PRIVATE KEY-----`,
      `-----BEGIN OPENSSH PRIVATE KEY-----\n${mixed(70)}\n${mixed(70)}`
    ],
    not: [
      "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
      "A key begins with -----BEGIN PRIVATE KEY----- and ends with a like line.",
      "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----"
    ]
  },
  "age secret key": { is: [`AGE-SECRET-KEY-1${upper(58)}`], not: [`AGE-SECRET-KEY-1${upper(57)}`, `age1${lower(58)}`] },
  "Telegram bot token": {
    is: [`123456789:AA${mixed(33)}`],
    not: [
      `123456789:AA${mixed(32)}`,
      `1234567:AA${mixed(33)}`,
      `123456789:BB${mixed(33)}`,
      `12345678901:AA${mixed(33)}`
    ]
  },
  "Discord webhook": {
    is: [`https://discord.com/api/webhooks/${"123456789012345678"}/${mixed(68)}`],
    not: ["https://discord.com/api/webhooks/", `https://discord.com/api/webhooks/12/${mixed(68)}`]
  },
  "DigitalOcean token": { is: [`dop_v1_${lower(64)}`], not: [`dop_v1_${lower(63)}`, `dop_v2_${lower(64)}`] },
  "Hugging Face token": {
    is: [`hf_${mixed(34)}`],
    not: ["hf_hub_download_of_the_large_file_here", `hf_${mixed(33)}`, `shf_${mixed(34)}`]
  },
  "Replicate token": { is: [`r8_${mixed(37)}`], not: [`r8_${mixed(36)}`, `xr8_${mixed(37)}`] },
  "Groq key": { is: [`gsk_${mixed(52)}`], not: [`gsk_${mixed(51)}`, `gsk_${mixed(53)}`] },
  "xAI key": { is: [`xai-${mixed(80)}`], not: [`xai-${mixed(79)}`, "xai-explainable"] },
  "Perplexity key": { is: [`pplx-${mixed(48)}`], not: [`pplx-${mixed(47)}`, "pplx-70b-online"] },
  "LangSmith key": {
    is: [`lsv2_pt_${lower(32)}_${lower(10)}`],
    not: [`lsv2_pt_${lower(32)}`, `lsv2_xx_${lower(32)}_${lower(10)}`]
  },
  "Shopify token": { is: [`shpat_${lower(32)}`], not: [`shpat_${lower(31)}`, `shpxx_${lower(32)}`] },
  "Databricks token": {
    is: [`dapi${lower(32)}`, `dapi${lower(32)}-2`],
    not: [`dapi${lower(31)}`, `adapi${lower(32)}`]
  },
  "Atlassian token": { is: [`ATATT3${mixed(100)}=1A2B3C4D`], not: [`ATATT3${mixed(50)}`, `ATATT2${mixed(100)}`] },
  "Linear key": { is: [`lin_api_${mixed(40)}`], not: [`lin_api_${mixed(39)}`, "lin_api_key"] },
  "Notion token": { is: [`ntn_${mixed(46)}`], not: [`ntn_${mixed(39)}`, `intn_${mixed(46)}`] },
  "Figma token": { is: [`figd_${mixed(40)}`], not: [`figd_${mixed(39)}`, `figx_${mixed(40)}`] },
  "Postman key": {
    is: [`PMAK-${lower(24)}-${lower(34)}`],
    not: [`PMAK-${lower(24)}-${lower(33)}`, `PMAK-${lower(59)}`]
  },
  "Sentry token": { is: [`sntryu_${lower(64)}`], not: [`sntryu_${lower(63)}`, `sntryx_${lower(64)}`] },
  "Grafana token": {
    is: [`glsa_${mixed(32)}_${lower(8)}`],
    not: [`glsa_${mixed(32)}`, `glsa_${mixed(31)}_${lower(8)}`]
  },
  "New Relic key": { is: [`NRAK-${upper(27)}`], not: [`NRAK-${upper(26)}`, `NRAK-${lower(27)}`] },
  "Supabase token": { is: [`sbp_${lower(40)}`], not: [`sbp_${lower(39)}`, `sbp_${upper(40)}`] },
  "Vault token": { is: [`hvs.${mixed(95)}`], not: [`hvs.${mixed(80)}`, `hvx.${mixed(95)}`] },
  "Doppler token": {
    is: [`dp.pt.${mixed(43)}`, `dp.st.dev.${mixed(43)}`],
    not: [`dp.pt.${mixed(39)}`, `dp.xx.${mixed(43)}`]
  },
  "Azure storage key": {
    is: [`AccountName=a;AccountKey=${mixed(86)}==;EndpointSuffix=core`],
    not: [`AccountKey=${mixed(85)}==`, `${mixed(86)}==`, "AccountKey=<key>"]
  },
  "Azure shared access key": {
    is: [`SharedAccessKey=${mixed(43)}=`],
    not: [`SharedAccessKey=${mixed(42)}=`, "SharedAccessKeyName=root"]
  },
  "Password in a URL": {
    is: [
      "postgres://app:hunter22@db.local/main",
      "https://:s3cr3t@example.com/",
      "redis://default:x%40y%2Fz@10.0.0.1:6379"
    ],
    not: [
      "https://example.com:8080/a@b",
      "postgres://user:password@localhost/db",
      "postgres://${USER}:${PASSWORD}@host/db",
      "https://user:<token>@host/",
      "ssh://git@github.com/a/b",
      "http://a:b@",
      "mailto:a:b@c",
      "https://user:[hidden]@host/"
    ]
  }
}

/** The part of a sample that must go: from the first part to the last. */
const hide = (text: string): string => {
  const found = spans(text) ?? []
  let out = ""
  let at = 0
  for (let index = 0; index < found.length; index += 2) {
    out += `${text.slice(at, found[index])}*`
    at = found[index + 1] ?? 0
  }
  return out + text.slice(at)
}

describe("CredentialFormats", () => {
  it("has samples for every rule, and no two rules of one name", () => {
    const names = credentialFormats.map(({ name }) => name)
    assert.deepEqual(names, [...new Set(names)])
    assert.deepEqual(names.toSorted(), Object.keys(samples).toSorted())
    for (const { anchors, source } of credentialFormats) {
      assert.isNotEmpty(source)
      for (const anchor of anchors) assert.isAtLeast(anchor.length, 3)
    }
  })

  for (const { name, pattern } of credentialFormats) {
    const { is, not } = samples[name] ?? { is: [], not: [] }
    it(`${name}: what it is`, () => {
      for (const text of is) {
        for (const [before, after] of [
          ["", ""],
          ["it is ", " or so"],
          ['{"a":"', '"}'],
          ["(", ")"],
          ["x=", "\n"]
        ] as const) {
          const given = before + text + after
          assert.isTrue(finds(given), given)
          const left = hide(given)
          assert.isTrue(left.startsWith(before) && left.endsWith(after), left)
          for (const run of text.match(/[A-Za-z0-9%]{20,}/g) ?? []) assert.notInclude(left, run)
          // What is hidden is not found again.
          assert.equal(hide(left), left)
        }
      }
      // This very rule does it, not a neighbour.
      assert.isTrue(
        is.every((text) => Array.from(text).some((_, at) => ((pattern.lastIndex = at), pattern.test(text)))),
        name
      )
    })
    it(`${name}: what it nearly is`, () => {
      assert.isAtLeast(not.length, 2)
      for (const text of not) {
        for (const given of [text, ` ${text} `, `"${text}"`]) assert.isUndefined(spans(given), given)
      }
    })
  }

  it("lets prose, code, hashes, ids and addresses pass", () => {
    for (const text of [
      "The token is sent as a bearer; set password = secret, then api_key: yes.",
      "authorization: Bearer <token>",
      '{"properties":{"token":{"type":"string"},"max_tokens":{"type":"integer"},"password":{"type":"string"}}}',
      "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
      "sha512-kU/fHIGf2a3b7xMChZ1GQ4hcRNs9DYH8PcDTpVUFIa4YkzKqxtYDE4EsxUoYVTc0qjgnVZpCCJ3xgzV8ZQQEQA==",
      "550e8400-e29b-41d4-a716-446655440000",
      "https://example.com:443/a/b?c=d#e sk-learn task-list npm_config_cache hf_hub",
      "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    ])
      assert.isUndefined(spans(text), text)
  })

  it("finds many, side by side and repeated, in the order of the text", () => {
    const one = `ghp_${mixed(36)}`
    const two = `npm_${mixed(36)}`
    assert.equal(hide(`${one} ${two},${one}`), "* *,*")
  })

  it("looks at each part of hostile texts a bounded number of times", () => {
    // Counts the characters that patterns may read: attempts times the longest match stays far below the square.
    for (const text of [
      "sk-proj-".repeat(40_000),
      "-AIza".repeat(60_000),
      "-----BEGIN PRIVATE KEY-----".repeat(10_000),
      `eyJ${"a".repeat(40)}.`.repeat(5_000),
      "://a:bbbbb".repeat(30_000),
      ".eyJaaaaaaaaaaaa".repeat(20_000),
      "AccountKey=".repeat(20_000)
    ])
      spans(text)
  })

  it("knows what the next text may complete", () => {
    const token = `ghp_${mixed(36)}`
    assert.equal(openFrom(`a ${token.slice(0, 14)}`, "telling"), 2)
    assert.equal(openFrom(`a ${token.slice(0, 6)}`, "telling"), 8)
    assert.equal(openFrom(`a ${token.slice(0, 6)}`, "any"), 2)
    assert.equal(openFrom("done. ", "any"), 6)
    const block = "-----BEGIN PRIVATE KEY-----\nMIIE"
    assert.equal(openFrom(`x ${block}`, "telling"), 2)
  })

  it("finds a token wherever it stands in any text of other characters", () => {
    const gap = fc.string({ unit: fc.constantFrom(" ", "-", ".", "é", '"', "\n", "/") })
    const token = fc
      .constantFrom(...Object.values(samples).flatMap(({ is }) => is))
      .filter((text) => /^[\w.-]+$/.test(text))
    fc.assert(
      fc.property(gap, token, gap, (before, text, after) => {
        assert.isTrue(finds(`${before} ${text} ${after}`))
      })
    )
  })
})
