import { describe, expect, test } from 'vitest'
import type { JobConfig } from '#config/configuration/configuration.ts'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { type Identity, isUser } from '#identity/identity.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import { digestClassName, MailChoices } from '#mail/mail-choices.ts'
import { MailStore } from '#mail/mail-store.ts'
import { NotificationStore } from '#mail/notification-store.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { commitOf, minute, newRun } from '#testing/databases/workflow-stores.ts'
import { someApproval } from '#testing/workflows/some-approval.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import type { DigestMails } from '#workflows/jobs/maintenance-access.ts'
import type { Approval } from '#workflows/record/approval.ts'
import type { NextState } from '#workflows/store/run-commit.ts'
import { RunStore } from '#workflows/store/run-store.ts'
import { mailDigests } from './digest-mails.ts'

const entry = (uid: string, more: Readonly<Record<string, readonly string[]>> = {}): DirectoryEntry => ({
  dn: Dn.of(['uid', uid], ['o', 'x']),
  identity: userRef(uid).identity,
  attributes: Attributes.from({ uid: [uid], mail: [`${uid}@example.com`], ...more }),
})

const people = [
  entry('alice', { preferredLanguage: ['fr-CA'] }),
  entry('gone', { active: ['false'] }),
  entry('silent', { mail: [] }),
]
const digestJob = { job: { className: digestClassName } } as JobConfig
const everything = { approval: 'digest', request: 'digest', question: 'digest', access: 'digest' } as const
const alice = userRef('alice').identity
const day = 24 * 60 * minute

const rules = { approvers: [], involved: { identities: [], names: [] }, escalations: [] }
const mail = { subject: '', text: '', address: 'mail' }
const link = (path: string) => ({ label: 'Open in the portal', url: `https://gate.test/${path}` })

function open({ mayDecide = true, required = false, earlier = [] as readonly Approval[] } = {}) {
  const database = memoryDatabase()
  const notifications = new NotificationStore(database)
  const outbox = new MailStore(database)
  const runs = new RunStore(database)
  const approval = someApproval({
    id: newId(),
    label: 'Payroll <b>',
    run: { subject: 'bob' },
    opened: new Date(Date.now() - day),
    rules: { ...rules, mail: { ...mail, required } },
  })
  const grant: Grant = {
    id: 'g',
    target: 'people',
    subject: 'alice',
    kind: 'group',
    name: 'vault',
    state: 'active',
    granted: new Date(Date.now() - 30 * day),
    expires: new Date(Date.now() + day),
  }
  const asked = { id: newId(), at: new Date(Date.now() + minute), by: userRef('boss'), askedBy: userRef('boss') }
  const parts = {
    notifications,
    choices: new MailChoices(notifications, { jobs: new Map([['digest', digestJob]]) }),
    runs,
    approvals: {
      /** One approval on each page. */
      list: async (user: { identity: Identity }, { after = '0' }: { after?: string | undefined }) => {
        const all = user.identity === alice ? [...earlier, approval] : []
        const end = Number(after) + 1
        return { approvals: all.slice(end - 1, end), ...(end < all.length ? { next: String(end) } : {}) }
      },
      get: async (_: unknown, id: string) => ({ ...(earlier.find((one) => one.id === id) ?? approval), mayDecide }),
      ofRun: async () => [],
      latestMessages: async (of: readonly string[]) =>
        new Map(
          of.filter((run) => run !== approval.run.id).map((run) => [run, { ...asked, kind: 'question' as const }]),
        ),
    },
    grants: { ofSubject: async () => [grant] },
    finder: {
      entriesOf: async ({ identity }: { identity: Identity }) =>
        people.filter((one) => isUser(one.identity, { identity, login: '' })),
      byLogin: async (login: string) => people.filter(({ attributes }) => attributes.first('uid') === login),
    },
    pages: {
      approval: (id: string) => link(`approvals/${id}`),
      request: (id: string) => link(`requests/${id}`),
      access: () => link('access'),
      notificationSettings: () => link('notifications/settings'),
    },
    texts: new Map([['de', new Map([['Label', 'Bezeichnung']])]] as const),
    log: silentLogger,
    workflowOf: () => ({ label: 'Label' }),
  }
  const write = (more: Partial<DigestMails> = {}) =>
    mailDigests(
      {
        since: new Date(Date.now() - day),
        until: new Date(Date.now() + minute),
        mailAttribute: 'mail',
        languageAttribute: 'preferredLanguage',
        limit: 100,
        signal: new AbortController().signal,
        ...more,
      },
      parts,
    )
  const begin = async (requestor = 'alice') => {
    const id = newId()
    await runs.start(newRun(id, { head: { requester: requestor, who: { requester: userRef(requestor).identity } } }))
    const [claimed] = await runs.claim('worker', 1, minute)
    if (claimed === undefined) throw new Error('no run')
    return claimed
  }
  const end = async (next: NextState, requestor = 'alice') => {
    const claimed = await begin(requestor)
    await runs.commit(commitOf(claimed, next))
    return claimed.head.id
  }
  const sent = async () => await outbox.claim(100, minute)
  return { database, notifications, approval, runs, write, begin, end, sent }
}

describe('a digest', () => {
  test('is one mail with links to everything that the user chose, in the language of the user', async () => {
    const { notifications, approval, write, end, sent } = open()
    await notifications.save(alice, { choices: everything, language: 'de' })
    const done = await end({ state: 'completed' })
    const waiting = await end({ state: 'waiting' })
    await end({ state: 'completed' }, 'bob')
    expect(await write()).toBe(1)
    const [only, ...others] = await sent()
    expect(others).toEqual([])
    expect(only).toMatchObject({ recipient: 'alice@example.com', subject: 'Ihre Übersicht: 4 neu' })
    const text = only?.text ?? ''
    expect(text).toContain(`- Payroll <b> (für bob)\n  https://gate.test/approvals/${approval.id}\n`)
    expect(text).toContain(`- boss fragt zu: Bezeichnung\n  https://gate.test/requests/${waiting}\n`)
    expect(text).toContain(`: erledigt.\n  https://gate.test/requests/${done}\n`)
    expect(text).toMatch(/- vault endet am .* UTC\n {2}https:\/\/gate\.test\/access\n/)
    expect(text).toContain('https://gate.test/notifications/settings')
    expect(only?.html).toContain('<html lang="de">')
    expect(only?.html).toContain('Payroll &lt;b&gt;')
    expect(only?.html).not.toContain('Payroll <b>')
  })

  test('never repeats an entry, and is not sent without a new one', async () => {
    const { notifications, write, end, sent } = open()
    await notifications.save(alice, { choices: everything })
    expect(await write()).toBe(1)
    expect((await Promise.all([write(), write()])).every((mails) => mails === 0)).toBe(true)
    const done = await end({ state: 'completed' })
    expect(await write()).toBe(1)
    const texts = (await sent()).map(({ text }) => text)
    expect(texts.filter((text) => text.includes('vault'))).toHaveLength(1)
    expect(texts.filter((text) => text.includes(done))).toHaveLength(1)
  })

  test('is in the language of the directory entry if the user chose none', async () => {
    const { notifications, write, sent } = open()
    await notifications.save(alice, { choices: { access: 'digest' } })
    await write()
    expect((await sent())[0]?.subject).toBe('Votre récapitulatif (1)')
  })

  test('has no approval that its reader may not decide, or that was mailed as required', async () => {
    for (const options of [{ mayDecide: false }, { required: true }]) {
      const { notifications, write } = open(options)
      await notifications.save(alice, { choices: { approval: 'digest' } })
      expect(await write()).toBe(0)
    }
  })

  test('has only the kinds that the user chose, from the time of the choice on', async () => {
    const { notifications, write, end } = open()
    await end({ state: 'completed' })
    await new Promise((resolve) => setTimeout(resolve, 5))
    await notifications.save(alice, { choices: { request: 'digest', approval: 'never' } })
    expect(await write()).toBe(0)
    await end({ state: 'failed', incident: { task: 't', code: 'TARGET_FAILED', message: 'password of svc-7 expired' } })
    expect(await write({ until: new Date(Date.now() - minute) })).toBe(0)
    expect(await write()).toBe(1)
  })

  test('still has what happened before the user chose otherwise', async () => {
    const { notifications, write, end } = open()
    await notifications.save(alice, { choices: { request: 'digest' } })
    await end({ state: 'completed' })
    await new Promise((resolve) => setTimeout(resolve, 5))
    await notifications.save(alice, { choices: { request: 'now' } })
    await end({ state: 'completed' })
    expect(await write()).toBe(1)
    expect(await write()).toBe(0)
  })

  test('goes to no one who is deactivated, gone or has no address', async () => {
    const { notifications, write } = open()
    for (const login of ['gone', 'silent', 'unknown']) {
      await notifications.save(userRef(login).identity, { choices: everything })
    }
    expect(await write()).toBe(0)
  })

  test('has what is behind hundreds of approvals and requests that were reported or are old', async () => {
    const earlier = Array.from({ length: 3 }, () => someApproval({ id: newId(), opened: new Date(), rules }))
    const { database, notifications, approval, runs, write, begin, end, sent } = open({ earlier })
    await notifications.save(alice, { choices: { approval: 'digest', request: 'digest' } })
    const long = await begin()
    for (let i = 0; i < 501; i++) await end({ state: 'completed' })
    const age = 'update runs set updated = 1, ended = 1 where ended > 0'
    await database.transaction((tx) => tx.run({ sql: age, params: [], name: undefined }))
    await notifications.addDigest(
      alice,
      earlier.map(({ id }) => `approval:${id}`),
      () => ({ ...mail, id: 'x', recipient: 'x@x' }),
    )
    await runs.commit(commitOf(long, { state: 'completed' }))
    expect(await write()).toBe(1)
    const text = (await sent()).map((one) => one.text).join()
    expect(text).toContain(approval.id)
    expect(text).toContain(long.head.id)
  })

  test('shows at most 50 entries of a kind, and says how many more there are', async () => {
    const { notifications, write, end, sent } = open()
    await notifications.save(alice, { choices: { request: 'digest' } })
    for (let i = 0; i < 53; i++) await end({ state: 'completed' })
    await write()
    const [only] = await sent()
    expect(only?.text.match(/requests\//g)).toHaveLength(50)
    expect(only?.text).toContain('Et 3 de plus dans le portail.')
  })
})
