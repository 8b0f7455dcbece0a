import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import { type PortalLinks, withLinks, withSentences } from '#mail/mail-links.ts'
import { newMails } from '#mail/mail-outbox.ts'
import { type MailReader, withReaders } from '#mail/mail-reader.ts'
import type { ChangeClaim } from '#requests/login/password-change-store.ts'
import { endedRows } from '#requests/sessions/session-end-audit.ts'
import type { SessionEnding } from '#requests/sessions/session-store.ts'
import { checkMail, type StepMail } from '#sdk/mail/mail.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { GrantedAccess, PasswordWrite, SetPassword, StepEffects } from '#sdk/workflow/workflow-task.ts'
import { auditedRun } from '#workflows/record/run-audit.ts'
import type { NewRun, RunEffects } from '#workflows/store/run-commit.ts'
import type { RunProgress } from './run-progress.ts'

/** The effects that one step requested. */
export interface StepRequests {
  readonly step: number
  readonly effects: CollectedEffects
}

/** The run that the steps belong to. */
type EffectRun = Pick<RunProgress, 'head' | 'session' | 'newAccount'>

/** What the mails of runs depend on. */
export interface RunMailing {
  /** Mails link to the request in the portal, so the run must be stored. */
  readonly pages?: PortalLinks | undefined
  readonly choices?: MailChoices | undefined
}

/**
 * The effects of steps, committed with them; no properties if there are none. Mails of registrations have no link to
 * the request: the user can't log in yet.
 */
export async function runEffects(
  by: EffectRun,
  requests: readonly StepRequests[],
  prepare: (call: WorkflowCall) => Promise<NewRun>,
  { pages, choices }: RunMailing = {},
): Promise<Pick<RunEffects, 'mails' | 'grants' | 'starts' | 'endings'>> {
  const run = by.head.id
  const endings = requests.flatMap(({ effects }) => effects.passwords.map((password) => endingOf(password, by)))
  const reportsOutcome = requests.some(({ effects }) => effects.mails.some(({ isOutcome }) => isOutcome === true))
  const { requester } = by.head.who
  const isUnwanted =
    reportsOutcome && requester !== undefined && (await choices?.isMailedNow('request', requester)) === false
  const whole = (
    { isOutcome: _, reader: _reader, sentences = [], ...mail }: StepMail,
    { texts }: MailReader,
  ): StepMail => {
    const said = withSentences(
      mail,
      sentences.map(({ key, values }) => texts(key, values)),
    )
    return withLinks(said, pages === undefined || by.newAccount !== undefined ? [] : [pages.request(run, texts)])
  }
  const mails: NewMail[] = []
  for (const { step, effects } of requests) {
    const wanted = effects.mails.filter(({ isOutcome }) => !(isUnwanted && isOutcome === true))
    const addressed = await withReaders(wanted, ({ reader }) => reader, choices)
    mails.push(
      ...newMails(
        run,
        step,
        addressed.map(([mail, reader]) => whole(mail, reader)),
      ),
    )
  }
  const grants = requests.flatMap(({ effects }) => effects.grants.map((access) => ({ ...access, id: newId(), run })))
  const starts: NewRun[] = []
  for (const { effects } of requests) for (const call of effects.starts) starts.push(await prepare(call))
  return {
    ...(mails.length === 0 ? {} : { mails }),
    ...(grants.length === 0 ? {} : { grants }),
    ...(starts.length === 0 ? {} : { starts }),
    ...(endings.length === 0 ? {} : { endings }),
  }
}

function endingOf({ owners, logins, claim }: WrittenPassword, { head, session }: EffectRun): SessionEnding {
  return {
    owners,
    logins,
    exceptPublicId: session,
    settles: claim === undefined ? undefined : { id: claim.id, lease: claim.lease },
    audit: (ended) => endedRows(ended, auditedRun(head)),
  }
}

const maxEach = 1_000

/** Records durably that a password is about to be written, for runs that no process continues after a crash. */
export interface PasswordNotes {
  begin(password: SetPassword): Promise<ChangeClaim>
  refused(claim: ChangeClaim): Promise<void>
  written(): void
}

interface WrittenPassword extends SetPassword {
  readonly claim?: ChangeClaim
}

/** Collects the effects of a step until its end is committed. A step that requests too much fails. */
export class CollectedEffects implements StepEffects {
  readonly mails: StepMail[] = []
  readonly grants: GrantedAccess[] = []
  readonly starts: WorkflowCall[] = []
  readonly passwords: WrittenPassword[] = []
  readonly #notes: PasswordNotes | undefined

  constructor(notes?: PasswordNotes) {
    this.#notes = notes
  }

  get isEmpty(): boolean {
    return this.mails.length + this.grants.length + this.starts.length + this.passwords.length === 0
  }

  /** Throws BAD_REQUEST for a mail that can't be sent. */
  mail(mail: StepMail): void {
    checkMail(mail)
    add(this.mails, mail)
  }

  grant(access: GrantedAccess): void {
    add(this.grants, access)
  }

  async beginPassword(password: SetPassword): Promise<PasswordWrite> {
    const claim = await this.#notes?.begin(password)
    return {
      written: () => {
        add(this.passwords, claim === undefined ? password : { ...password, claim })
        this.#notes?.written()
      },
      refused: async () => {
        if (claim !== undefined) await this.#notes?.refused(claim)
      },
    }
  }

  start(call: WorkflowCall): void {
    add(this.starts, call)
  }
}

function add<T>(list: T[], one: T): void {
  if (list.length >= maxEach) throw new GatewayError('WORKFLOW_FAILED', `a step asks for more than ${maxEach} effects`)
  list.push(one)
}
