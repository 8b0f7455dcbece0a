import type { AuditRecord } from '#sdk/audit/audit-entry.ts'

/** A reconciliation that follows changes of its source. */
export interface FollowedSource {
  readonly name: string
  /** Whether changes at this target may be changes of the source. */
  counts(target: string): boolean
}

/** What records of the audit say about the people of a source. */
export interface PeopleChanges {
  /** Logins of people who were changed, each once. */
  readonly logins: readonly string[]
  /** A group was renamed or deleted, or its groups changed, which may change any person. */
  readonly isWide: boolean
}

/**
 * The changes at targets that count. A renamed user has two logins, and the old one shows what is left of it. New groups
 * change no one, since their members follow one by one.
 */
export function changedPeople(records: readonly AuditRecord[], counts: (target: string) => boolean): PeopleChanges {
  const logins = new Map<string, string>()
  const add = (login: string | undefined): void => {
    if (login !== undefined && login !== '') logins.set(login.toLowerCase(), login)
  }
  let isWide = false
  for (const row of records.flatMap(({ rows }) => rows)) {
    const { kind, action, attribute, value, subject, target } = row
    if (!counts(target)) continue
    if (kind === 'group' && attribute === 'members') isWide = true
    else if (kind === 'entry' && attribute === 'name') isWide ||= action !== 'add'
    else if (kind === 'entry' || kind === 'attribute' || kind === 'group') {
      add(subject)
      if (attribute === 'userID') add(value)
    }
  }
  return { logins: [...logins.values()], isWide }
}
