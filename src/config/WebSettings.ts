/** `[web]` of sigil.toml (R section 1.9): also the network policy of MCP servers. */
import type { FieldReader } from "./Fields.ts"
import type { Decision } from "./PermissionSettings.ts"
import { decisions } from "./PermissionSettings.ts"

/** `[web]`. Times in seconds and sizes in bytes, as written. */
export interface WebSettings {
  readonly enabled: boolean
  readonly networkMode: Decision
  readonly allowHttp: boolean
  readonly proxyMode: "environment" | "direct"
  readonly timeoutSecs: number
  readonly connectTimeoutSecs: number
  readonly maxUrlBytes: number
  readonly maxWireResponseBytes: number
  readonly maxDecodedResponseBytes: number
  readonly maxModelContentBytes: number
  readonly maxFetchesPerRun: number
  readonly maxClientSearchesPerRun: number
  readonly maxNetworkAttemptsPerRun: number
  readonly maxTotalWireBytesPerRun: number
  readonly maxTotalDecodedBytesPerRun: number
  readonly maxTotalModelBytesPerRun: number
  readonly maxConcurrentRequests: number
  readonly perHostRateLimitPerMinute: number
  readonly allowedPorts: ReadonlyArray<number>
  readonly allowedDomains: ReadonlyArray<string>
  readonly blockedDomains: ReadonlyArray<string>
  readonly allowedPrivateHosts: ReadonlyArray<string>
  readonly allowedPrivateCidrs: ReadonlyArray<string>
  readonly searchRoute: "auto" | "provider_hosted" | "mcp" | "bundled" | "disabled"
  readonly searchMcp?: { readonly server: string; readonly tool: string }
  readonly bundledSearchEnabled: boolean
}

/** What holds without a `[web]` table. */
export const defaultWeb: WebSettings = {
  enabled: true,
  networkMode: "allow",
  allowHttp: true,
  proxyMode: "environment",
  timeoutSecs: 15,
  connectTimeoutSecs: 5,
  maxUrlBytes: 2_048,
  maxWireResponseBytes: 2_097_152,
  maxDecodedResponseBytes: 1_048_576,
  maxModelContentBytes: 24_000,
  maxFetchesPerRun: 5,
  maxClientSearchesPerRun: 3,
  maxNetworkAttemptsPerRun: 12,
  maxTotalWireBytesPerRun: 8_388_608,
  maxTotalDecodedBytesPerRun: 4_194_304,
  maxTotalModelBytesPerRun: 98_304,
  maxConcurrentRequests: 2,
  perHostRateLimitPerMinute: 10,
  allowedPorts: [80, 443],
  allowedDomains: [],
  blockedDomains: [],
  allowedPrivateHosts: [],
  allowedPrivateCidrs: [],
  searchRoute: "auto",
  bundledSearchEnabled: true
}

const decodePorts = (reader: FieldReader): ReadonlyArray<number> => {
  const property = reader.take("allowed_ports")
  if (property === undefined) return defaultWeb.allowedPorts
  if (property.value.kind !== "array") {
    reader.add(reader.pathOf(property), property.value.at, "expected a list of port numbers")
    return defaultWeb.allowedPorts
  }
  const field = reader.pathOf(property)
  return property.value.items.flatMap((item, index) => {
    const port = reader.numberIn(item, `${field}[${index}]`, { min: 1, max: 65_535, integer: true, unit: "" })
    return port === undefined ? [] : [port]
  })
}

const decodeSearchMcp = (web: FieldReader): WebSettings["searchMcp"] => {
  const reader = web.table("search_mcp")
  if (reader === undefined) return undefined
  const server = reader.text("server")
  const tool = reader.text("tool")
  reader.refuseUnused("web.search_mcp")
  if (server !== undefined && tool !== undefined) return { server, tool }
  if (!reader.has("server") || !reader.has("tool"))
    reader.add(reader.path, reader.object.at, "expected both server and tool")
  return undefined
}

/** Reads `[web]`; every fault goes to the reader's issues. */
export const decodeWeb = (reader: FieldReader): WebSettings => {
  const count = (name: string, fallback: number, unit: string): number =>
    reader.number(name, { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true, unit }) ?? fallback
  const none: ReadonlyArray<string> = []
  const searchMcp = decodeSearchMcp(reader)
  const bundled = reader.table("bundled_search")
  const bundledSearchEnabled = bundled?.bool("enabled") ?? true
  bundled?.refuseUnused("web.bundled_search")
  const settings: WebSettings = {
    enabled: reader.bool("enabled") ?? defaultWeb.enabled,
    networkMode: reader.choice("network_mode", decisions) ?? defaultWeb.networkMode,
    allowHttp: reader.bool("allow_http") ?? defaultWeb.allowHttp,
    proxyMode: reader.choice("proxy_mode", ["environment", "direct"]) ?? defaultWeb.proxyMode,
    timeoutSecs: count("timeout_secs", defaultWeb.timeoutSecs, "seconds"),
    connectTimeoutSecs: count("connect_timeout_secs", defaultWeb.connectTimeoutSecs, "seconds"),
    maxUrlBytes: count("max_url_bytes", defaultWeb.maxUrlBytes, "bytes"),
    maxWireResponseBytes: count("max_wire_response_bytes", defaultWeb.maxWireResponseBytes, "bytes"),
    maxDecodedResponseBytes: count("max_decoded_response_bytes", defaultWeb.maxDecodedResponseBytes, "bytes"),
    maxModelContentBytes: count("max_model_content_bytes", defaultWeb.maxModelContentBytes, "bytes"),
    maxFetchesPerRun: count("max_fetches_per_run", defaultWeb.maxFetchesPerRun, ""),
    maxClientSearchesPerRun: count("max_client_searches_per_run", defaultWeb.maxClientSearchesPerRun, ""),
    maxNetworkAttemptsPerRun: count("max_network_attempts_per_run", defaultWeb.maxNetworkAttemptsPerRun, ""),
    maxTotalWireBytesPerRun: count("max_total_wire_bytes_per_run", defaultWeb.maxTotalWireBytesPerRun, "bytes"),
    maxTotalDecodedBytesPerRun: count(
      "max_total_decoded_bytes_per_run",
      defaultWeb.maxTotalDecodedBytesPerRun,
      "bytes"
    ),
    maxTotalModelBytesPerRun: count("max_total_model_bytes_per_run", defaultWeb.maxTotalModelBytesPerRun, "bytes"),
    maxConcurrentRequests: count("max_concurrent_requests", defaultWeb.maxConcurrentRequests, ""),
    perHostRateLimitPerMinute: count("per_host_rate_limit_per_minute", defaultWeb.perHostRateLimitPerMinute, ""),
    allowedPorts: decodePorts(reader),
    allowedDomains: reader.strings("allowed_domains") ?? none,
    blockedDomains: reader.strings("blocked_domains") ?? none,
    allowedPrivateHosts: reader.strings("allowed_private_hosts") ?? none,
    allowedPrivateCidrs: reader.strings("allowed_private_cidrs") ?? none,
    searchRoute:
      reader.choice("search_route", ["auto", "provider_hosted", "mcp", "bundled", "disabled"]) ??
      defaultWeb.searchRoute,
    ...(searchMcp === undefined ? {} : { searchMcp }),
    bundledSearchEnabled
  }
  reader.refuseUnused("web")
  return settings
}
