import sql, { join } from 'sql-template-tag'
import { readNow } from '#database/database-time.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { deletedAtOnce, deleteInParts, dynamic, statement } from '#database/statement.ts'
import { assertStorable, optionalText } from '#database/text-keys.ts'
import { type Identity, storedIdentity } from '#identity/identity.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import { insertMails } from './mail-store.ts'
import {
  type MailChoice,
  type MailTime,
  mailTimes,
  type NotificationChoices,
  type NotificationKind,
  type NotificationSettings,
  notificationKinds,
  usualMail,
} from './notification.ts'

interface SettingsRow {
  readonly userKey: string
  /** JSON: by kind, `[mail, since, before]`. */
  readonly choices: string
  readonly language: string | null
}

/** How many users one statement names. */
const atOnce = 200

/** What users chose to be mailed about, and what digests have reported. */
export class NotificationStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Of those users who chose something. */
  async settingsOf(users: readonly Identity[]): Promise<ReadonlyMap<Identity, NotificationSettings>> {
    const found = new Map<Identity, NotificationSettings>()
    for (let start = 0; start < users.length; start += atOnce) {
      const some = users.slice(start, start + atOnce)
      const text = sql`select user_key as "userKey", choices, language from notification_settings
        where user_key in (${join(some)})`
      const rows = await this.#client.query(dynamic<SettingsRow>(this.#client.dialect, text))
      for (const row of rows) found.set(storedIdentity(row.userKey), toSettings(row))
    }
    return found
  }

  /** A choice that stays the same keeps its time. */
  async save(user: Identity, { choices, language }: NotificationChoices): Promise<NotificationSettings> {
    return await this.#client.transaction(async (tx) => {
      const now = await readNow(tx)
      // A row that does not exist can't be locked, and the first choices of two calls would replace each other.
      await insertSettings.run(tx, { user })
      const row = await findSettings.first(tx, { user })
      const earlier = row === undefined ? { choices: {} } : toSettings(row)
      const merged: Partial<Record<NotificationKind, MailChoice>> = { ...earlier.choices }
      for (const kind of notificationKinds) {
        const mail = choices[kind]
        const before = merged[kind]?.mail ?? usualMail[kind]
        if (mail !== undefined && mail !== before) merged[kind] = { mail, since: new Date(now), before }
      }
      const chosen = language ?? earlier.language
      await saveSettings.run(tx, {
        user,
        choices: JSON.stringify(toStored(merged)),
        language: optionalText(chosen),
        digest: Object.values(merged).some(({ mail, before }) => [mail, before].includes('digest')) ? 1 : 0,
      })
      return { choices: merged, ...(chosen === undefined ? {} : { language: chosen }) }
    })
  }

  /** Users who chose a digest for something, or had chosen one before their last change; by identity, after the given one. */
  async digestReaders(after: string, limit: number): Promise<readonly Identity[]> {
    return (await findReaders.all(this.#client, { after, limit })).map(({ userKey }) => storedIdentity(userKey))
  }

  /** Those of the entries that no digest of the user has reported. */
  async unreported(user: Identity, entries: readonly string[]): Promise<ReadonlySet<string>> {
    const left = new Set(entries)
    for (let start = 0; start < entries.length; start += atOnce) {
      const some = entries.slice(start, start + atOnce)
      const text = sql`select entry from digest_entries where user_key = ${user} and entry in (${join(some)})`
      const rows = await this.#client.query(dynamic<{ entry: string }>(this.#client.dialect, text))
      for (const { entry } of rows) left.delete(entry)
    }
    return left
  }

  /**
   * Adds the mail with those of the entries that no digest of the user has reported, and records them as reported, in
   * one transaction: of concurrent callers one reports an entry. `compose` gets at least one entry, and must not do I/O.
   * False if all were reported.
   */
  async addDigest(
    user: Identity,
    entries: readonly string[],
    compose: (fresh: ReadonlySet<string>) => NewMail,
  ): Promise<boolean> {
    for (const entry of entries) assertStorable('entry of a digest', entry)
    return await this.#client.transaction(async (tx) => {
      const now = await readNow(tx)
      const fresh = new Set<string>()
      for (const entry of [...entries].sort()) {
        if ((await insertEntry.first(tx, { user, entry, at: now })) !== undefined) fresh.add(entry)
      }
      if (fresh.size === 0) return false
      await insertMails(tx, [compose(fresh)], now)
      return true
    })
  }

  /** Forgets what was reported before then; returns how many entries. */
  pruneDigests(before: Date): Promise<number> {
    return deleteInParts(this.#client, pruneEntries, { before: before.getTime() })
  }
}

type StoredChoices = Partial<Record<NotificationKind, readonly [mail: MailTime, since: number, before: MailTime]>>

const toStored = (choices: NotificationSettings['choices']): StoredChoices =>
  Object.fromEntries(
    Object.entries(choices).map(([kind, { mail, since, before }]) => [kind, [mail, since.getTime(), before]]),
  )

/** Leaves out kinds and times that this version does not know. */
function toSettings({ choices, language }: SettingsRow): NotificationSettings {
  const stored = JSON.parse(choices) as StoredChoices
  const read: Partial<Record<NotificationKind, MailChoice>> = {}
  for (const kind of notificationKinds) {
    const [mail, since = 0, before] = stored[kind] ?? []
    const isKnown = [mail, before].every((time) => mailTimes.some((known) => known === time))
    if (mail !== undefined && before !== undefined && isKnown) read[kind] = { mail, since: new Date(since), before }
  }
  return { choices: read, ...(language === null ? {} : { language }) }
}

const findSettings = statement<{ user: Identity }, SettingsRow>(
  (on) => `select user_key as "userKey", choices, language from notification_settings
   where user_key = :user ${on.forUpdate}`,
)
const insertSettings = statement<{ user: Identity }>(
  `insert into notification_settings (user_key, choices, digest) values (:user, '{}', 0)
   on conflict (user_key) do nothing`,
)
const saveSettings = statement<{ user: Identity; choices: string; language: string | null; digest: number }>(
  `update notification_settings set choices = :choices, language = :language, digest = :digest where user_key = :user`,
)
const findReaders = statement<{ after: string; limit: number }, { userKey: string }>(
  `select user_key as "userKey" from notification_settings
   where digest = 1 and user_key > :after order by user_key limit :limit`,
)
const insertEntry = statement<{ user: Identity; entry: string; at: number }, { entry: string }>(
  `insert into digest_entries (user_key, entry, at) values (:user, :entry, :at)
   on conflict (user_key, entry) do nothing returning entry`,
)
const pruneEntries = statement<{ before: number }>(
  `delete from digest_entries where (user_key, entry) in
     (select user_key, entry from digest_entries where at < :before limit ${deletedAtOnce})`,
)
