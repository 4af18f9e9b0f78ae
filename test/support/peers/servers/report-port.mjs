// Preloaded into servers of others: keeps them on 127.0.0.1, tells their port, and ends them with their parent.
import net from "node:net"
import { endWithParent } from "./listen.mjs"

endWithParent()
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...rest) {
  this.once("listening", () => process.stderr.write(`listening on ${this.address().port}\n`))
  return listen.call(
    this,
    { port: Number(port), host: "127.0.0.1" },
    ...rest.filter((part) => typeof part === "function")
  )
}
