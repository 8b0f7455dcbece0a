import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { newId } from '#kernel/ids.ts'
import { MailChoices } from '#mail/mail-choices.ts'
import { MailStore } from '#mail/mail-store.ts'
import { NotificationStore } from '#mail/notification-store.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { commitOf, minute, newApproval, newRun } from '#testing/databases/workflow-stores.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { mailedOutcomes, type OutcomeMails } from '#workflows/jobs/maintenance-access.ts'
import { ApprovalStore } from '#workflows/store/approval-store.ts'
import { GrantStore } from '#workflows/store/grant-store.ts'
import type { NextState } from '#workflows/store/run-commit.ts'
import { RunStore } from '#workflows/store/run-store.ts'
import { mailOutcomes } from './outcome-mails.ts'

const entry = (uid: string, more: Readonly<Record<string, readonly string[]>> = {}): DirectoryEntry => ({
  dn: Dn.of(['uid', uid], ['o', 'x']),
  identity: userRef(uid).identity,
  attributes: Attributes.from({ uid: [uid], mail: [`${uid}@example.com`], ...more }),
})

const people: Readonly<Record<string, DirectoryEntry>> = {
  alice: entry('alice'),
  ulla: entry('ulla', { preferredLanguage: ['de'] }),
  alias: entry('alias', { mail: ['Alice@Example.com'] }),
  gone: entry('gone', { active: ['false'] }),
  silent: entry('silent', { mail: ['not an address'] }),
}

describe('mails about outcomes', () => {
  async function open() {
    const database = memoryDatabase()
    const notifications = new NotificationStore(database)
    const one = {
      runs: new RunStore(database),
      approvals: new ApprovalStore(database),
      mails: new MailStore(database),
      grants: new GrantStore(database),
    }
    const parts = {
      ...one,
      finder: {
        entriesOf: async ({ login }: { login: string }) => (people[login] ? [people[login]] : []),
        nameOf: async ({ login }: { login: string }) => people[login]?.attributes.first('displayName') ?? login,
      },
      pages: {
        request: (run: string) => ({ label: 'Open in the portal', url: `https://gate.test/requests/${run}` }),
        approval: () => ({ label: '', url: '' }),
        access: () => ({ label: '', url: '' }),
        notificationSettings: () => ({ label: '', url: '' }),
      },
      choices: new MailChoices(notifications, { jobs: new Map() }),
      workflowOf: (name: string) => ({ label: `Label of ${name}` }),
      texts: new Map([['de', new Map([['Label of create-user', 'Konto anlegen']])]] as const),
    }
    const mail = (more: Partial<OutcomeMails> = {}) =>
      mailOutcomes(
        {
          outcomes: mailedOutcomes,
          since: new Date(Date.now() - 60 * minute),
          until: new Date(Date.now() + 60 * minute),
          mailAttribute: 'mail',
          limit: 1000,
          signal: new AbortController().signal,
          ...more,
        },
        parts,
      )
    const end = async (requestor: string, next: NextState, touched = false) => {
      const id = newId()
      await one.runs.start(
        newRun(id, { head: { requester: requestor, who: { requester: userRef(requestor).identity } } }),
      )
      const [claimed] = await one.runs.claim('worker', 1, minute)
      if (claimed === undefined) throw new Error('no run')
      await one.runs.commit({ ...commitOf(claimed, next), touched })
      return id
    }
    /** Claims the queued mails: the text by run. */
    const sent = async () => new Map((await one.mails.claim(500, minute)).map((mailed) => [mailed.run, mailed]))
    return { one, notifications, mail, end, sent }
  }
  const incident = { task: 't', code: 'TARGET_FAILED', message: 'password of svc-7 expired' }

  test('say what happened and whether anything was changed, once for each outcome', async () => {
    const { one, mail, end, sent } = await open()
    const done = await end('alice', { state: 'completed' }, true)
    const expired = await end('alice', { state: 'expired' })
    const failed = await end('alice', { state: 'failed', incident }, true)
    const stuck = await end('alice', { state: 'incident', incident })
    const stopped = await end('alice', { state: 'waiting' })
    const { fence = 0 } = (await one.runs.get(stopped)) ?? {}
    const cancellation = { by: 'admin', reason: 'No budget' }
    await one.runs.cancel({ id: stopped, fence, onlyUntouched: true, outcome: 'cancelled', cancellation, effects: {} })
    await end('alice', { state: 'waiting' })
    expect(await mail()).toBe(5)
    const mails = await sent()
    expect(mails.size).toBe(5)
    const textOf = (run: string) => mails.get(run)?.text.split('\n')[0]
    const about = (run: string) => `Your request "Label of create-user" for subject of ${run}`
    expect(textOf(done)).toBe(`${about(done)} is done.`)
    expect(textOf(expired)).toContain('it had not ended by its deadline. Nothing was changed.')
    expect(textOf(failed)).toContain(
      'failed: A downstream system refused the change. Some changes may have been made before.',
    )
    expect(textOf(stuck)).toContain('is on hold until an administrator has looked at it. It may still succeed.')
    expect(textOf(stopped)).toBe(`${about(stopped)} was cancelled: No budget. Nothing was changed.`)
    expect(mails.get(done)).toMatchObject({ recipient: 'alice@example.com', subject: 'Done: Label of create-user' })
    expect(mails.get(done)?.text).toContain(`https://gate.test/requests/${done}`)
    expect(JSON.stringify([...mails.values()])).not.toContain('svc-7')
    await mail()
    expect((await sent()).size).toBe(0)
  })

  test('are in the language of the requester, with the reasons of failures', async () => {
    const { one, notifications, mail, end, sent } = await open()
    const failed = await end('ulla', { state: 'failed', incident }, true)
    const done = await end('ulla', { state: 'completed' })
    const english = await end('alice', { state: 'completed' })
    expect(await mail()).toBe(3)
    const mails = await sent()
    expect(mails.get(done)?.subject).toBe('Erledigt: Konto anlegen')
    expect(mails.get(failed)?.text).toContain(
      'ist fehlgeschlagen: Ein angebundenes System hat die Änderung abgelehnt. Einige Änderungen waren vorher vielleicht schon gemacht.',
    )
    expect(mails.get(english)?.subject).toBe('Done: Label of create-user')
    await notifications.save(userRef('ulla').identity, { choices: {}, language: 'es' })
    await end('ulla', { state: 'expired' })
    expect(await mail({ summary: 'later' })).toBe(2)
    expect((await one.mails.claim(10, minute)).map(({ subject }) => subject).sort()).toEqual([
      'Outcomes of your requests: 1',
      'Resultados de sus solicitudes: 3',
    ])
  })

  test('have the comment of a denial', async () => {
    const { one, mail, end, sent } = await open()
    const approval = newApproval(newId(), { timers: [] })
    const run = await end('alice', { state: 'waiting', approval })
    const vote = { approval: approval.id, version: 1, outcome: 'denied', by: userRef('boss') } as const
    await one.approvals.decide({ ...vote, comment: 'Not you', signal: {}, audit: [] })
    const [claimed] = await one.runs.claim('worker', 1, minute)
    if (claimed === undefined) throw new Error('no run')
    await one.runs.commit(commitOf(claimed, { state: 'denied' }))
    expect(await mail()).toBe(1)
    expect((await sent()).get(run)?.text).toContain('was denied. Comment of the approver: Not you')
  })

  test('go to active requesters with an address, and not about their own cancellations', async () => {
    const { one, mail, end } = await open()
    for (const requestor of ['gone', 'silent', 'unknown']) await end(requestor, { state: 'completed' })
    await one.runs.start(newRun(newId(), { head: { requester: 'alice' }, state: { state: 'completed' } }))
    const own = await end('alice', { state: 'waiting' })
    const { fence = 0 } = (await one.runs.get(own)) ?? {}
    const cancellation = { by: 'Alice' }
    await one.runs.cancel({ id: own, fence, onlyUntouched: true, outcome: 'cancelled', cancellation, effects: {} })
    await end('alice', { state: 'completed' })
    expect(await mail({ outcomes: ['expired'] })).toBe(0)
    expect(await mail({ until: new Date(Date.now() - minute) })).toBe(0)
    expect(await mail({ since: new Date(Date.now() + minute) })).toBe(0)
    expect(await mail()).toBe(1)
  })

  test('go to requesters as they chose when the outcome happened', async () => {
    const { notifications, mail, end, sent } = await open()
    const { identity } = userRef('alice')
    const before = await end('alice', { state: 'completed' })
    await new Promise((resolve) => setTimeout(resolve, 5))
    await notifications.save(identity, { choices: { request: 'never' } })
    await end('alice', { state: 'completed' })
    expect(await mail()).toBe(1)
    expect([...(await sent()).keys()]).toEqual([before])
    await notifications.save(identity, { choices: { request: 'digest' } })
    await end('alice', { state: 'completed' })
    expect(await mail()).toBe(1)
  })

  test('are one summary for each requester and key', async () => {
    const { mail, end, sent } = await open()
    const runs = [await end('alice', { state: 'completed' }), await end('alice', { state: 'expired' })]
    expect(await mail({ summary: 'job/1', notifier: 'n' })).toBe(1)
    const [summary] = (await sent()).values()
    expect(summary).toMatchObject({
      subject: 'Outcomes of your requests: 2',
      recipient: 'alice@example.com',
      notifier: 'n',
    })
    for (const run of runs) expect(summary?.text).toContain(`https://gate.test/requests/${run}`)
    await mail({ summary: 'job/1' })
    expect((await sent()).size).toBe(0)
  })

  test('of two users with one mailbox are both in its summary', async () => {
    const { mail, end, sent } = await open()
    const runs = [await end('alice', { state: 'completed' }), await end('alias', { state: 'completed' })]
    expect(await mail({ summary: 'today' })).toBe(1)
    const [only, ...others] = (await sent()).values()
    expect(others).toEqual([])
    expect(runs.filter((run) => only?.text.includes(run))).toEqual(runs)
  })
})
