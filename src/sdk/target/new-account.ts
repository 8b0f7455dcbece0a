import type { Directory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { StepMail } from '#sdk/mail/mail.ts'

/** A value, of any attribute, that no other user may have, without regard to letter case. */
export interface UniqueValue {
  readonly attribute: string
  readonly value: string
}

/** An account that the run created. */
export interface CreatedAccount {
  readonly target: string
  readonly userID: string
  /** The target's own id of the account, if it has one: another account of the same login has another. */
  readonly id?: string
}

/**
 * Binds a run, and the runs that it starts, to accounts that do not exist yet: every target creates them, and
 * refuses with ACCOUNT_EXISTS to change one that the run did not create. The run then fails and keeps no secrets, or is an
 * incident if it has changed something.
 */
export interface NewAccount {
  /** Values that no account may have when the first one is created. */
  readonly unique: readonly UniqueValue[]
  /** What the run that started this one created before. */
  readonly created?: readonly CreatedAccount[]
  /** Sent if the account turns out to exist. */
  readonly refusal?: StepMail
}

const everywhere = new Dn([])

/** The unique values that a directory entry has. */
export async function takenValues(
  directory: Pick<Directory, 'search'>,
  values: readonly UniqueValue[],
): Promise<UniqueValue[]> {
  const found = await inParallel(values, 4, async ({ attribute, value }) => {
    const filter = { kind: 'equal', attribute, value } as const
    const search = { base: everywhere, scope: 'sub', filter, limit: 1, everyTree: true } as const
    return await directory.search({ ...search, attributes: [attribute] })
  })
  return values.filter((_, i) => (found[i]?.length ?? 0) > 0)
}

/** The run met an account that it did not create. */
export class AccountExists extends GatewayError {
  /** Where the run had created the account before. */
  readonly targets: readonly string[]

  constructor(publicText: string, targets: readonly string[], cause: unknown) {
    super('ACCOUNT_EXISTS', publicText, { publicText, cause })
    this.targets = targets
  }
}

/** `what` names the account, such as `named "ann"`; `created` is what the run did before it met this one. */
export function accountExists(what: string, created: readonly CreatedAccount[], cause?: unknown): AccountExists {
  const targets = [...new Set(created.map(({ target }) => target))]
  const done =
    targets.length === 0
      ? 'the registration created no account'
      : `the registration stopped after it created the account at ${targets.map((target) => `"${target}"`).join(', ')}`
  return new AccountExists(`An account ${what} exists already; ${done}.`, targets, cause)
}

/** The login as written, short enough for a sentence. */
export const accountNamed = (login: string): string => `named "${login.slice(0, 100)}"`

/** The login, and the spellings of it that a target may treat as the same. */
export const loginSpellings = (login: string): ReadonlySet<string> =>
  new Set([login, login.normalize('NFC'), login.toLowerCase(), login.normalize('NFKC').toLowerCase()])
