import * as z from 'zod'
import { Attributes } from '#identity/attributes.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Wire } from '#kernel/wire.ts'
import { member } from '#protocols/scim/message.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'
import { type ChangePreview, changePreview, type PreviewEntry, type PreviewStep } from '#sdk/contract/preview.ts'
import type { AttributeWrite } from '#sdk/flow/flow.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

const dryRunSchema = 'urn:gatehouse:params:scim:api:messages:1.0:DryRun'

/** The answer to a change that was not made. */
export const dryRunMessage = z.object({
  schemas: z.array(z.literal(dryRunSchema)),
  complete: z
    .boolean()
    .describe(
      'The change would succeed, and do nothing else: no task is without a preview, and nothing was left out for its size.',
    ),
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

interface RunPreview {
  preview(): Promise<ChangePreview>
  readonly check?: EffectCheck | undefined
  /** The part of a step that the client may see. */
  shown(step: PreviewStep): PreviewStep | undefined
}

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

/** What the operations of a bulk request share. */
export class DryRunRoom {
  /** What the answer has room for. */
  runs = 500
  characters = 2 * 1024 * 1024
  /** Values that only one resource may have. */
  readonly taken = new Set<string>()
}

/** Throws if the steps do not have the effect that the request wants. */
export type EffectCheck = (steps: readonly PreviewStep[]) => Awaitable<void>

/** Collects the previews of one call, which changes nothing. */
export class DryRun {
  readonly room: DryRunRoom
  /** What the client sees, and every step. */
  readonly #runs: ({ readonly shown: PreviewedRun; readonly steps: readonly PreviewStep[] } | undefined)[] = []
  readonly #taken = new Set<string>()
  #isCut = false
  #detail: string | undefined

  constructor(room = new DryRunRoom()) {
    this.room = room
  }

  /**
   * Adds the preview of a run, in the order of these calls, if there is room. Returns whether the run would wait. The
   * effect of one that is known, and would not wait, is checked as after a real run.
   */
  async add(run: Pick<PreviewedRun, 'workflow' | 'subject'>, { preview, check, shown }: RunPreview): Promise<boolean> {
    if (this.room.runs <= 0 || this.room.characters <= 0) {
      this.cut('There are more runs than a dry run shows.')
      return false
    }
    this.room.runs--
    const place = this.#runs.push(undefined) - 1
    const whole = await preview()
    const { steps } = whole
    const parts = steps.map(shown)
    const visible = { ...run, ...whole, steps: parts.filter((part) => part !== undefined) }
    this.room.characters -= JSON.stringify(visible).length
    this.#runs[place] = { shown: visible, steps }
    if (waits(whole)) {
      this.#hide(parts, steps)
      return true
    }
    try {
      if (isKnown(whole)) await check?.(steps)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      this.cut(`The change would fail after its run: ${error.publicText}`)
    }
    this.#hide(parts, steps)
    return false
  }

  #hide(parts: readonly (PreviewStep | undefined)[], steps: readonly PreviewStep[]): void {
    if (parts.some((part, i) => part !== steps[i])) this.cut('Effects that this client cannot read are left out.')
  }

  /** Notes a value that only one resource may have: the next operation of the request does not find it stored. */
  take(attribute: string, value: string): void {
    const key = JSON.stringify([attribute, value])
    const { taken } = this.room
    if (taken.has(key) && !this.#taken.has(key)) {
      this.cut(`An earlier operation of this request takes the same value of "${attribute}".`)
    }
    this.#taken.add(key)
    taken.add(key)
  }

  /** Something would happen that no run shows. */
  cut(detail: string): void {
    this.#isCut = true
    this.#detail ??= detail
  }

  /** The users and groups that would change. */
  get changed(): ReadonlySet<string> {
    const steps = this.#runs.flatMap((run) => run?.steps ?? [])
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
    return this.#runs.flatMap((run) => run?.shown ?? [])
  }
}

const isKnown = ({ whole, steps }: ChangePreview): boolean =>
  whole && steps.every((step) => step.kind !== 'unforeseen' && !('cut' in step && step.cut))
const waits = ({ steps }: ChangePreview): boolean => steps.some(({ kind }) => kind === 'approval' || kind === 'wait')

/** The steps that change users, or groups, where they are looked up. The directory may show those of any target. */
export const stepsOf = (
  kind: 'user' | 'group',
  lookup: { readonly kind: 'directory' } | { readonly kind: 'target'; readonly name: string },
  steps: readonly PreviewStep[],
): readonly PreviewEntry[] =>
  steps.flatMap((step) =>
    step.kind === kind && (lookup.kind === 'directory' || step.target === lookup.name) ? [step] : [],
  )

/** What the steps change, as a run reports it. */
export const writesIn = (steps: readonly PreviewEntry[]): readonly AttributeWrite[] =>
  steps.flatMap(({ target, attributes }) => attributes.map(({ name }) => ({ target, attribute: name })))

interface NamedEntry {
  readonly name: string
  readonly attributes: Attributes
}

/** The entry after the steps of it; undefined if it is deleted, or was not there and is not created. */
export function entryAfter(
  steps: readonly PreviewEntry[],
  name: string,
  attributes: Attributes | undefined,
): NamedEntry | undefined {
  let after: NamedEntry | undefined = attributes && { name, attributes }
  for (const step of steps) {
    if (!sameLogin(step.name, after?.name ?? name)) continue
    const changed = (after?.attributes ?? new Attributes()).clone()
    // A secret has some other value.
    for (const { name, secret, after: values } of step.attributes) changed.set(name, secret ? ['new'] : values)
    after = step.action === 'delete' ? undefined : { name: step.newName ?? step.name, attributes: changed }
  }
  return after
}
