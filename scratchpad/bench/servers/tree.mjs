// The minimal server with a child, and a grandchild in a session of its own. Neither cares for any input.
import { spawn } from "node:child_process"
import "./echo.mjs"

spawn("/bin/sh", ["-c", "setsid sleep 300 & exec sleep 300"], { stdio: "ignore" })
