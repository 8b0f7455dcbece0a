import type { JsonValue } from '#kernel/json.ts'
import type { PluginHost } from '#protocols/plugin/plugin-host.ts'
import { PluginAnswerReader } from '#sdk/plugin-answer.ts'
import type { TargetChange, TargetRequest } from '#sdk/target.ts'
import type { Read } from './plugin-answers.ts'

/** Calls of one step that change something. */
export interface AuditedRequest {
  /**
   * The audit entries are the plug-in's own where it makes any, and else those of `computed`. The plug-in's own are
   * recorded also when the call fails, since they tell what had been done by then.
   */
  change(
    functionName: string,
    args: (request: JsonValue) => readonly JsonValue[],
    computed: () => readonly TargetChange[],
  ): Promise<void>
}

/** Calls the plug-in's functions with plain values, and reads what they answer. */
export class PluginCaller {
  readonly #plugin: PluginHost

  constructor(plugin: PluginHost) {
    this.#plugin = plugin
  }

  has(functionName: string): boolean {
    return this.#plugin.has(functionName)
  }

  async ask<T>(functionName: string, args: readonly JsonValue[], read: Read<T>, request?: TargetRequest): Promise<T> {
    const services = request === undefined ? {} : { request: args.length - 1, log: request.log }
    const { value } = await this.#plugin.call({ function: functionName, args, ...services })
    return read(value, new PluginAnswerReader(functionName))
  }

  auditing(request: TargetRequest): AuditedRequest {
    return {
      change: async (functionName, argsFor, computed) => {
        const args = argsFor(plainRequest(request))
        const reader = new PluginAnswerReader(functionName)
        let audited = false
        await this.#plugin.call({
          function: functionName,
          args,
          request: args.length - 1,
          log: request.log,
          onAudit: (entry) => {
            audited = true
            request.audit(reader.change(entry))
          },
        })
        if (audited) return
        for (const change of computed()) request.audit(change)
      },
    }
  }
}

/** What a plug-in sees of the request; values that are not data are left out. */
export function plainRequest({ workflow, idempotencyKey, requestor, params }: TargetRequest): JsonValue {
  return JSON.parse(JSON.stringify({ workflow, idempotencyKey, requestor, params })) as JsonValue
}
