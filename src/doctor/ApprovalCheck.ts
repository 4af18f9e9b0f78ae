/** Whether the stored answers about project servers can be used; while they cannot, all those servers are pending. */
import * as Effect from "effect/Effect"
import { fixOf } from "../base/Failure.ts"
import { ApprovalStore } from "../policy/ApprovalStore.ts"
import type { Finding } from "./Check.ts"

/** A finding when the file is damaged, unreadable or open to others; nothing when it is fine or absent. */
export const checkApprovals: Effect.Effect<ReadonlyArray<Finding>, never, ApprovalStore> = Effect.flatMap(
  ApprovalStore,
  (store) =>
    Effect.match(store.read, {
      onFailure: (error): ReadonlyArray<Finding> => [
        {
          code: "workspace:approvals",
          subject: error.where?.file ?? "approvals",
          status: "error",
          message: `No server of a project counts as approved. ${error.text}`,
          fix: fixOf(error),
          ...(error.where === undefined ? {} : { where: error.where })
        }
      ],
      onSuccess: () => []
    })
)
