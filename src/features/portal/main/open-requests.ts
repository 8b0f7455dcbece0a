import type { MainParts } from '#features/portal/front/main-parts.ts'
import { isUser, type UserRef } from '#identity/identity.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import { hasEnded, type Run, runStates } from '#workflows/record/run.ts'

const openStates = runStates.filter((state) => !hasEnded(state))
const pageSize = 500

/** A request as a caller makes it: a workflow for one user, with parameters. */
interface WantedRequest {
  readonly workflow: string
  readonly subject: { readonly login: string; readonly identity?: UserRef['identity'] }
  readonly parameters: Readonly<Record<string, string>>
  /** The names of parameters that distinguish requests. A run may get others from its tasks. */
  readonly parameterNames: ReadonlySet<string>
}

/** The requests of a caller that have not ended. */
export class OpenRequests {
  readonly #runs: Pick<RunHead, 'id' | 'workflow' | 'subject' | 'who' | 'caller'>[]
  readonly #parameters = new Map<string, ReadonlyMap<string, string>>()
  readonly #parts: MainParts
  readonly #most: number
  #started = 0

  /** Reads at most as many as the caller may have. */
  static async of(requester: UserRef, parts: MainParts): Promise<OpenRequests> {
    const { runs } = parts.host
    const most = parts.settings.given.maxOpenRequests
    const found: Run[] = []
    let after: string | undefined
    do {
      const limit = Math.min(pageSize, most - found.length)
      const query = { states: openStates, requestedBy: requester, limit, ...(after === undefined ? {} : { after }) }
      const page = await runs.list(query)
      found.push(...page.runs)
      after = page.next
    } while (after !== undefined && found.length < most)
    return new OpenRequests(found, most, parts)
  }

  private constructor(runs: readonly Run[], most: number, parts: MainParts) {
    this.#runs = runs.map(({ head }) => head)
    this.#most = most
    this.#parts = parts
  }

  get isFull(): boolean {
    return this.#runs.length + this.#started >= this.#most
  }

  /** Counts one that is about to be started; undone by the returned function if it is not. */
  reserve(): () => void {
    this.#started++
    return () => {
      this.#started--
    }
  }

  /** Notes a request that was started. */
  add(id: string, { workflow, subject, parameters }: WantedRequest): void {
    const { login, identity } = subject
    this.#runs.push({ id, workflow, subject: login, who: { subject: identity } })
    this.#parameters.set(id, new Map(Object.entries(parameters)))
  }

  /** The run of an open request for the same workflow, subject and parameters. */
  async equalTo({ workflow, subject, parameters, parameterNames }: WantedRequest): Promise<string | undefined> {
    const { login, identity } = subject
    const candidates = this.#runs.filter(
      (run) =>
        run.workflow === workflow &&
        // Another caller made that one in the requester's name.
        run.caller === undefined &&
        (identity === undefined ? sameLogin(run.subject, login) : isUser(run.who.subject, { login, identity })),
    )
    const unread = candidates.filter(({ id }) => !this.#parameters.has(id)).map(({ id }) => id)
    if (unread.length > 0) {
      for (const [id, read] of await this.#parts.host.runs.parametersOf(unread)) this.#parameters.set(id, read)
    }
    const names = [...parameterNames]
    return candidates.find(({ id }) => {
      const given = this.#parameters.get(id)
      return given !== undefined && names.every((name) => given.get(name) === parameters[name])
    })?.id
  }
}
