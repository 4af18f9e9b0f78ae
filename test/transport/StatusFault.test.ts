/** What an HTTP status means for a request: code, whether it may be sent again, and nothing of the server's words. */
import { assert, describe, it } from "vitest"
import { errorIn, retryAfter, statusFault } from "../../src/transport/StatusFault.ts"

describe("a status", () => {
  const table: ReadonlyArray<
    readonly [status: number, credential: boolean, code: string, reason: string, delivered: string]
  > = [
    [401, false, "SIGIL_SIGN_IN_NEEDED", "authentication_required", "no"],
    [401, true, "SIGIL_SIGN_IN_NEEDED", "authentication_failed", "no"],
    [403, true, "SIGIL_HTTP_STATUS", "access_denied", "no"],
    [404, false, "SIGIL_HTTP_STATUS", "unexpected_http_status", "no"],
    [405, false, "SIGIL_HTTP_STATUS", "unexpected_http_status", "no"],
    [408, false, "SIGIL_HTTP_STATUS", "unexpected_http_status", "unknown"],
    [429, false, "SIGIL_HTTP_STATUS", "rate_limited", "no"],
    [500, false, "SIGIL_HTTP_STATUS", "service_unavailable", "unknown"],
    [503, false, "SIGIL_HTTP_STATUS", "service_unavailable", "unknown"]
  ]
  for (const [status, credential, code, reason, delivered] of table)
    it(`${status}${credential ? " with a credential" : ""} is ${reason}`, () => {
      const fault = statusFault(status, { credential })
      assert.deepEqual([fault.code, fault.reason, fault.delivered, fault.status], [code, reason, delivered, status])
    })

  it("hands a JSON-RPC error of the body on, where access is not the point", () => {
    const error = errorIn('{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"m","data":{"supported":[]}}}')
    assert.deepEqual(error, { code: -32022, message: "m", data: { supported: [] } })
    assert.deepEqual(statusFault(400, { credential: false, error }).error, error)
    assert.isUndefined(statusFault(403, { credential: false, error }).error)
    assert.isUndefined(statusFault(429, { credential: false, error }).error)
    for (const body of ["", "<html>", "[]", "5", '{"error":"x"}', '{"error":{"code":"x","message":"m"}}'])
      assert.isUndefined(errorIn(body))
  })
})

describe("Retry-After", () => {
  const now = Date.parse("2026-01-01T00:00:00Z")
  const table: ReadonlyArray<readonly [text: string | undefined, ms: number | undefined]> = [
    [undefined, undefined],
    ["0", 0],
    [" 5 ", 5_000],
    ["3600", 3_600_000],
    ["3601", undefined],
    ["-1", undefined],
    ["1.5", undefined],
    ["soon", undefined],
    ["", undefined],
    ["Thu, 01 Jan 2026 00:00:10 GMT", 10_000],
    ["Wed, 31 Dec 2025 23:59:50 GMT", undefined],
    ["Fri, 02 Jan 2026 00:00:00 GMT", undefined]
  ]
  for (const [text, ms] of table)
    it(`'${text}' is ${ms === undefined ? "not believed" : `${ms} ms`}`, () => assert.equal(retryAfter(text, now), ms))
})
