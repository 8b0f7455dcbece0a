import * as z from 'zod'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Wire } from '#kernel/wire.ts'
import { member } from '#protocols/scim/message.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'
import { type ChangePreview, changePreview } from '#sdk/contract/preview.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'

const dryRunSchema = 'urn:gatehouse:params:scim:api:messages:1.0:DryRun'

/** The answer to a change that was not made. */
export const dryRunMessage = z.object({
  schemas: z.array(z.literal(dryRunSchema)),
  complete: z
    .boolean()
    .describe('Nothing else would happen: no task is without a preview, and nothing was left out for its size.'),
  waits: z.boolean().describe('A run would wait for a decision or a time, so the change would be answered with 202.'),
  detail: z.string().describe('Why it is not complete, where no run shows that.').optional(),
  runs: z
    .array(
      changePreview.extend({
        workflow: z.string(),
        subject: z.string().describe('The login of the user, or the name of the group after `group `.'),
      }),
    )
    .describe('The runs that the change would start. None if it would change nothing.'),
})

type DryRunMessage = Wire<typeof dryRunMessage>
type PreviewedRun = DryRunMessage['runs'][number]

/** In header or query, as clients and proxies may spell it. */
const isName = (name: string): boolean => /^(?:x-?)?dry-?run$/.test(name.toLowerCase().replaceAll('_', '-'))

/**
 * Whether the request only wants to know what it would do. Throws invalidValue for a value other than `true` and `false`,
 * and if header and query differ, since a change that was meant to be a dry run can't be taken back.
 */
export function isDryRun({ headers, query }: Pick<GatewayRequest, 'headers' | 'query'>): boolean {
  const values = [...Object.entries(headers), ...query]
    .filter(([name]) => isName(name))
    .flatMap(([, value]) => value ?? [])
  if (values.every((value) => value === 'false')) return false
  if (values.every((value) => value === 'true')) return true
  const odd = values.find((value) => value !== 'true' && value !== 'false')
  const problem = odd === undefined ? 'header and query parameter differ' : `${quoted(odd)} is neither true nor false`
  throw scimError('invalidValue', `Dry-Run: ${problem}. Nothing was changed. Send the header or dryRun=true once.`)
}

/** Throws invalidValue for such a name in a body: it would be ignored, and the change made. */
export function refuseDryRunName(name: string): void {
  if (!isName(name)) return
  const remedy = 'Send the header Dry-Run, or dryRun in the query of the request.'
  throw scimError('invalidValue', `${quoted(name)} has no effect in a body. Nothing was changed. ${remedy}`)
}

/** Throws as `refuseDryRunName` does, for the members of a message and of its operations. */
export function refuseDryRunMember(message: JsonValue): void {
  const operations = isJsonObject(message) ? member(message, 'Operations') : undefined
  for (const part of [message, ...(Array.isArray(operations) ? operations : [])]) {
    if (isJsonObject(part)) Object.keys(part).forEach(refuseDryRunName)
  }
}

/** What the answer to one request has room for; the operations of a bulk request share it. */
export class DryRunRoom {
  runs = 500
  characters = 2 * 1024 * 1024
}

/** Collects the previews of one call, which changes nothing. */
export class DryRun {
  readonly room: DryRunRoom
  readonly #runs: (PreviewedRun | undefined)[] = []
  #isCut = false
  #detail: string | undefined

  constructor(room = new DryRunRoom()) {
    this.room = room
  }

  /** Adds the preview of a run, in the order of these calls, if there is room. Returns whether the run would wait. */
  async add(run: Pick<PreviewedRun, 'workflow' | 'subject'>, preview: () => Promise<ChangePreview>): Promise<boolean> {
    if (this.room.runs <= 0 || this.room.characters <= 0) {
      this.cut('There are more runs than a dry run shows.')
      return false
    }
    this.room.runs--
    const place = this.#runs.push(undefined) - 1
    const shown = { ...run, ...(await preview()) }
    this.room.characters -= JSON.stringify(shown).length
    this.#runs[place] = shown
    return waits(shown)
  }

  /** Something would happen that no run shows. */
  cut(detail: string): void {
    this.#isCut = true
    this.#detail ??= detail
  }

  /** The users and groups that would change. */
  get changed(): ReadonlySet<string> {
    const steps = this.#shown.flatMap((run) => run.steps)
    const entries = steps.flatMap((step) => (step.kind === 'user' || step.kind === 'group' ? [step] : []))
    return new Set(
      entries.flatMap(({ kind, target, name, newName = name, joins, leaves }) => [
        ...[name, newName].map((one) => JSON.stringify([target, kind, one.toLowerCase()])),
        ...[...joins, ...leaves].map((one) => JSON.stringify([target, 'group', one.toLowerCase()])),
      ]),
    )
  }

  get message(): JsonObject {
    const runs = this.#shown
    const isKnown = ({ whole, steps }: PreviewedRun) => whole && steps.every(({ kind }) => kind !== 'unforeseen')
    const message: DryRunMessage = {
      schemas: [dryRunSchema],
      complete: !this.#isCut && runs.every(isKnown),
      waits: runs.some(waits),
      ...(this.#detail === undefined ? {} : { detail: this.#detail }),
      runs,
    }
    return message
  }

  get #shown(): PreviewedRun[] {
    return this.#runs.filter((run) => run !== undefined)
  }
}

const waits = ({ steps }: ChangePreview): boolean => steps.some(({ kind }) => kind === 'approval' || kind === 'wait')
