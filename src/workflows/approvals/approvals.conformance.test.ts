import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { entryIdentity, issuerIdentity, type UserRef } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import { textsIn } from '#sdk/page/page-texts.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { accountExists, type NewAccount } from '#sdk/target/new-account.ts'
import type { ApprovalRequest } from '#sdk/workflow/approval-request.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { runSql } from '#testing/databases/postgres.ts'
import { newRun, outcomes } from '#testing/databases/workflow-stores.ts'
import { MemoryPeople } from '#testing/workflows/memory-people.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { TimerLoop } from '#workflows/timers/timer-loop.ts'
import { ApprovalDesk, type DeskParts } from './approval-desk.ts'
import type { ApprovalAssignment } from './desk-requests.ts'
import { escalationTimer } from './open-approval.ts'

const minute = 60_000
const day = 24 * 60 * minute

/** One installation: two processes, users, and requests of `asker` about `subject`. */
class Office {
  readonly people = new MemoryPeople()
  readonly authorizations = new Map<string, Authorization>()
  readonly one: Storage
  readonly two: Storage
  /** How far the clocks of the processes are off. */
  skewMillis = 0

  readonly #url: string

  constructor(url: string, one: Storage, two: Storage) {
    this.#url = url
    this.one = one
    this.two = two
    const { people } = this
    people.put('boss', ['managers']).put('chief', ['managers', 'chiefs']).put('deputy').put('asker').put('subject')
  }

  static async open(url: string): Promise<Office> {
    const process = async (): Promise<Storage> => {
      const storage = openStorage({ url, clock: systemClock, log: silentLogger })
      onTestFinished(() => storage.close())
      await storage.ready()
      return storage
    }
    return new Office(url, await process(), await process())
  }

  /** Like a person with a database tool. */
  async sql(statement: string): Promise<void> {
    if (!this.isAlone) return void (await runSql(this.#url, statement))
    const database = new DatabaseSync(this.#url.slice('sqlite:'.length))
    database.exec(statement)
    database.close()
  }

  /** The database serves one process. */
  get isAlone(): boolean {
    return this.#url.startsWith('sqlite:')
  }

  desk(storage: Storage = this.one, more: Partial<DeskParts> = {}): ApprovalDesk {
    const { directory, root } = this.people
    const { authorizations } = this
    return new ApprovalDesk({
      approvals: storage.approvals,
      delegations: storage.delegations,
      mails: storage.mails,
      audit: storage.audit,
      rateLimits: this.isAlone ? this.one.rateLimits : storage.rateLimits,
      directory,
      root,
      rules: new RuleEvaluator(directory, authorizations, silentLogger),
      authorizations,
      clock: () => new Date(Date.now() + this.skewMillis),
      log: silentLogger,
      ...more,
    })
  }

  group(name: string): Rule {
    const group = this.people.groupDn(name)
    return { scope: 'group', constraint: group.toString(), group }
  }

  /** Creates a run that waits for the approval; returns the approval's id. */
  async ask(
    more: Partial<ApprovalRequest> = {},
    about: Partial<RunHead> & { uid?: string; newAccount?: NewAccount; desk?: ApprovalDesk } = {},
  ) {
    const { uid, newAccount, desk = this.desk(), ...given } = about
    const head = runHead({ id: newId(), workflow: 'vault', subject: 'subject', requester: 'asker', ...given })
    const request: ApprovalRequest = {
      label: 'Access to the vault',
      approvers: [this.group('managers')],
      allowSelf: false,
      escalations: [],
      mail: { text: 'Please decide.', address: 'mail' },
      ...more,
    }
    const approval = await desk.open(request, {
      head,
      step: 1,
      newAccount,
      user: {
        userID: head.subject,
        attributes: Attributes.from({
          ...(uid === undefined ? {} : { uid: [uid] }),
          cn: ['Sub Ject'],
          userPassword: ['hush'],
        }),
        groups: [],
      },
      request: new Map<string, unknown>([
        ['namespace', 'prod'],
        ['api_token', 'hush'],
        ['WORKFLOW_ID', head.id],
        ['accessEnds', head.accessEnds?.toISOString() ?? ''],
      ]),
    })
    await this.one.runs.start(newRun(head.id, { head, state: { state: 'waiting' } }), { approval })
    return { id: approval.id, run: head.id }
  }

  async approversOf(id: string): Promise<readonly string[] | undefined> {
    return (await this.one.approvals.get(id))?.approvers.map(({ login }) => login)
  }

  async mailedTo(): Promise<string[]> {
    const mails = await this.one.mails.claim(500, minute)
    return mails.map(({ recipient }) => recipient).sort()
  }

  async audited(): Promise<string[]> {
    const { rows } = await this.one.audit.list({ limit: 100 })
    return rows.map(({ requestor, caller, value, reason }) => [requestor, caller, value, reason].join('|')).reverse()
  }

  /** Handles due timers, like a process that has just started. */
  async sweep(storage: Storage = this.one): Promise<number> {
    const loop = new TimerLoop({ store: storage.timers, log: silentLogger })
    const desk = this.desk(storage)
    loop.on(escalationTimer, (timer) => desk.escalate(timer))
    return await loop.sweep()
  }
}

const boss = userRef('boss')
const chief = userRef('chief')
const escalation = (millis: number, approvers: readonly Rule[], more = {}) => ({
  after: { months: 0, millis },
  approvers,
  ...more,
})

onEachDatabase('approvals', (freshUrl) => {
  const open = async (): Promise<Office> => Office.open(await freshUrl())

  describe('a registration', () => {
    const newAccount: NewAccount = { unique: [] }

    test("can't be approved if its account exists, and can be denied", async () => {
      const office = await open()
      const [first, second] = [await office.ask({}, { newAccount }), await office.ask()]
      const asked: string[] = []
      const newAccounts = {
        existing: async () => ({ login: true, attributes: [] }),
        refuse: async ({ id }: { readonly id: string }) => {
          asked.push(id)
          return accountExists('named "subject"', [])
        },
      }
      const desk = office.desk(office.one, { newAccounts })
      const vote = { approval: first.id, approve: true }
      await expect(desk.decide(boss, vote)).rejects.toMatchObject({ code: 'ACCOUNT_EXISTS', status: 409 })
      expect(await desk.get(boss, first.id)).toMatchObject({ state: 'open', newAccount: true })
      expect(await desk.existing(boss, first.id)).toEqual({ login: true, attributes: [] })
      expect(await desk.existing(boss, second.id)).toBeUndefined()
      expect(await desk.existing(userRef('deputy'), first.id)).toBeUndefined()
      expect(await desk.decide(boss, { approval: first.id, approve: false })).toMatchObject({ state: 'denied' })
      expect(await desk.decide(boss, { approval: second.id, approve: true })).toMatchObject({ state: 'approved' })
      expect(asked).toEqual([first.id])
    })

    test('its approver gets a mail if it fails after the approval', async () => {
      const office = await open()
      const { id, run } = await office.ask({}, { newAccount })
      await office.desk().decide(boss, { approval: id, approve: true })
      const mails = await office.desk().mailsToDeciders(run, (texts) => texts('mail.exists'))
      expect(mails).toMatchObject([
        { recipient: 'boss@x.org', subject: 'Not done: Access to the vault', text: textsIn('en')('mail.exists') },
      ])
      expect(await office.desk().mailsToDeciders('another run', () => 'x')).toEqual([])
    })
  })

  test('an approver gets a hundred mails about requests of one requester at once, and all of the requests', async () => {
    const office = await open()
    const desk = office.desk()
    for (let i = 0; i < 106; i++) {
      // All processes of a PostgreSQL database count together, and a new configuration continues to count.
      await office.ask({}, { desk: office.desk(i % 2 === 0 || office.isAlone ? office.one : office.two) })
    }
    await office.ask({}, { desk, requester: 'another' })
    const mailed = (await office.mailedTo()).filter((recipient) => recipient === 'boss@x.org').length
    // Two come back in a minute.
    expect(mailed).toBeGreaterThanOrEqual(101)
    expect(mailed).toBeLessThan(106)
    expect((await desk.list(boss, { limit: 200 })).approvals).toHaveLength(107)
  })

  test('all approvers together get two thousand mails about requests of one requester at once', async () => {
    const office = await open()
    await office.ask()
    expect(await office.mailedTo()).toHaveLength(2)
    const rate = { burst: 2_000, perMinute: 40 }
    await office.one.rateLimits.take('mails of one requester', 'asker', rate, 2_000)
    await office.ask()
    expect(await office.mailedTo()).toEqual([])
    await office.ask({}, { requester: 'another' })
    expect(await office.mailedTo()).toHaveLength(2)
  })

  describe('deciding', () => {
    test('continues the run with the decision, and the audit has the approver, the deputy and the comment', async () => {
      const office = await open()
      const { id, run } = await office.ask()
      expect(await office.mailedTo()).toEqual(['boss@x.org', 'chief@x.org'])
      const view = await office.desk(office.two).get(boss, id)
      expect(view).toMatchObject({
        label: 'Access to the vault',
        approvers: [{ login: 'boss' }, { login: 'chief' }],
        mayDecide: true,
        data: { attributes: { cn: ['Sub Ject'] }, groups: [], parameters: { namespace: 'prod', accessEnds: '' } },
      })
      expect(JSON.stringify(view)).not.toContain('hush')
      const decided = await office.desk(office.two).decide(boss, { approval: id, approve: false, comment: 'not now' })
      expect(decided).toMatchObject({
        state: 'denied',
        mayDecide: false,
        decision: { by: { login: 'boss' }, comment: 'not now' },
      })
      const signal = { kind: 'approval', approval: id, approved: false, by: 'boss', comment: 'not now' }
      expect(await office.one.runs.claim('w', 5, minute)).toMatchObject([{ head: { id: run }, signal }])
      expect(await office.audited()).toEqual(['boss||denied|not now'])
      expect((await office.desk().list(chief, { limit: 5 })).approvals).toEqual([])
      expect(await office.desk().ofRun(run)).toMatchObject([{ id, decision: { by: { login: 'boss' } } }])
    })

    test('D10: two approvers in the same millisecond: one wins, the other gets a conflict', async () => {
      const office = await open()
      for (let round = 0; round < 10; round++) {
        const { id } = await office.ask()
        const votes = await Promise.allSettled([
          office.desk(office.one).decide(boss, { approval: id, approve: true }),
          office.desk(office.two).decide(chief, { approval: id, approve: false }),
        ])
        expect(outcomes(votes)).toEqual({ done: 1, refused: ['CONFLICT'] })
      }
      expect(await office.audited()).toHaveLength(10)
      expect((await office.one.runs.list({ states: ['ready'], limit: 50 })).runs).toHaveLength(10)
    })

    test('a user who left the group may no longer decide, and a new member may', async () => {
      const office = await open()
      const { id } = await office.ask()
      office.people.put('boss').put('new', ['managers'])
      await expect(office.desk().decide(boss, { approval: id, approve: true })).rejects.toMatchObject({ status: 404 })
      expect(await office.desk().get(boss, id)).toBeUndefined()
      await office.desk().decide(userRef('NEW'), { approval: id, approve: true })
      expect(await office.desk().get(userRef('stranger'), id)).toBeUndefined()
    })

    test('a caller with a directory entry is judged by that entry alone', async () => {
      const office = await open()
      const { id } = await office.ask()
      const entry = { ...userRef('deputy'), login: 'boss', dn: office.people.userDn('deputy') }
      await expect(office.desk().decide(entry, { approval: id, approve: true })).rejects.toMatchObject({ status: 404 })
      const linked = { ...userRef('boss'), login: 'sub-0815', dn: office.people.userDn('boss') }
      expect((await office.desk().list(linked, { limit: 5 })).approvals).toHaveLength(1)
      await office.desk().decide(linked, { approval: id, approve: true })
    })

    test('needs a comment only if the approval requires one', async () => {
      const office = await open()
      const { id: free } = await office.ask()
      expect(await office.desk().decide(boss, { approval: free, approve: true })).toMatchObject({ state: 'approved' })
      const { id } = await office.ask({ commentRequired: true })
      expect(await office.desk().get(boss, id)).toMatchObject({ commentRequired: true })
      for (const comment of ['', ' \n']) {
        const vote = { approval: id, approve: false, comment }
        await expect(office.desk().decide(boss, vote)).rejects.toMatchObject({ status: 400 })
      }
      const said = { approval: id, approve: false, comment: 'no' }
      expect(await office.desk().decide(boss, said)).toMatchObject({ state: 'denied' })
    })

    test('passes to another user, who alone may decide from then on', async () => {
      const office = await open()
      office.people.put('helper')
      const helper = userRef('helper')
      const { id } = await office.ask()
      const handover = { approval: id, to: 'helper', comment: 'on leave', version: 1 }
      await office.desk().reassign(boss, handover)
      await expect(office.desk().reassign(boss, handover)).rejects.toMatchObject({ status: 404 })
      expect(await office.mailedTo()).toContain('helper@x.org')
      await expect(office.desk().decide(boss, { approval: id, approve: true })).rejects.toMatchObject({ status: 404 })
      expect(await office.desk().list(helper, { limit: 5 })).toMatchObject({ approvals: [{ id, version: 2 }] })
      expect((await office.one.audit.list({ limit: 5 })).rows).toMatchObject([
        { requestor: 'boss', approval: id, value: 'reassigned to helper', reason: 'on leave' },
      ])
      expect(await office.desk().decide(helper, { approval: id, approve: true })).toMatchObject({ state: 'approved' })
      await expect(office.desk().reassign(helper, { approval: id, to: 'boss' })).rejects.toMatchObject({ status: 409 })
    })

    test('does not pass to the requester, the subject or an unknown user, nor by other users', async () => {
      const office = await open()
      const { id } = await office.ask({ allowSelf: true })
      for (const to of ['asker', 'subject', 'unknown']) {
        await expect(office.desk().reassign(boss, { approval: id, to })).rejects.toMatchObject({ status: 400 })
      }
      await expect(office.desk().reassign(userRef('deputy'), { approval: id, to: 'chief' })).rejects.toMatchObject({
        status: 404,
      })
      const stale = { approval: id, to: 'deputy', version: 9 }
      await expect(office.desk().reassign(boss, stale)).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
      expect(await office.desk().get(boss, id)).toMatchObject({ version: 1, mayDecide: true })
    })

    test('can be preceded by a question to the requester, whose answer is kept', async () => {
      const office = await open()
      const { id, run } = await office.ask()
      const asker = userRef('asker')
      await expect(office.desk().answer(asker, { run, text: 'Yes' })).rejects.toMatchObject({ status: 409 })
      await expect(office.desk().ask(asker, { approval: id, text: 'Why?' })).rejects.toMatchObject({ status: 404 })
      for (const text of [' ', 'x'.repeat(2001)]) {
        await expect(office.desk().ask(boss, { approval: id, text })).rejects.toMatchObject({ status: 400 })
      }
      await office.desk().ask(boss, { approval: id, text: ' Why? ' })
      await office.desk(office.two).answer(asker, { run, text: 'Because.' })
      expect(await office.desk().messagesOf(run)).toMatchObject([
        { kind: 'question', by: boss, text: 'Why?', at: expect.any(Date) },
        { kind: 'answer', by: { login: 'asker' }, text: 'Because.' },
      ])
      expect((await office.one.audit.list({ limit: 5 })).rows).toMatchObject([
        { requestor: 'asker', approval: id, value: 'answered', reason: 'Because.' },
        { requestor: 'boss', approval: id, value: 'asked the requester', reason: 'Why?' },
      ])
      expect(await office.mailedTo()).toContain('asker@x.org')
      await office.desk().decide(boss, { approval: id, approve: true })
      await expect(office.desk().answer(asker, { run, text: 'More' })).rejects.toMatchObject({ status: 409 })
    })

    test('a comment is limited, and a decision on another version is rejected', async () => {
      const office = await open()
      const { id } = await office.ask()
      const decide = (more: object) => office.desk().decide(boss, { approval: id, approve: true, ...more })
      await expect(decide({ comment: 'x'.repeat(2001) })).rejects.toMatchObject({ status: 400 })
      await expect(decide({ version: 7 })).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
      await expect(office.desk().decide(boss, { approval: '\0', approve: true })).rejects.toMatchObject({ status: 404 })
      expect(await decide({ version: 1, comment: 'x'.repeat(2000) })).toMatchObject({ state: 'approved' })
      await expect(decide({})).rejects.toMatchObject({ status: 409 })
    })

    test("access that would have expired already can't be approved, and can be denied", async () => {
      const office = await open()
      const accessEnds = new Date(Date.now() + day)
      const [late, early] = [await office.ask({}, { accessEnds }), await office.ask({}, { accessEnds })]
      const { approvals } = await office.desk().list(boss, { limit: 5 })
      expect(approvals.map((one) => one.run.accessEnds)).toEqual([accessEnds, accessEnds])
      await office.desk().decide(boss, { approval: early.id, approve: true })
      office.skewMillis = 2 * day
      await expect(office.desk().decide(boss, { approval: late.id, approve: true })).rejects.toMatchObject({
        code: 'UNPROCESSABLE',
        publicText: 'The requested expiry date has passed. You can only deny this request.',
      })
      expect(await office.desk().get(boss, late.id)).toMatchObject({
        state: 'open',
        mayDecide: true,
        run: { accessEnds },
      })
      expect(await office.desk().decide(boss, { approval: late.id, approve: false })).toMatchObject({
        state: 'denied',
      })
      // A decided approval is reported as decided, even if the access would have expired.
      for (const { id } of [late, early]) {
        await expect(office.desk().decide(chief, { approval: id, approve: true })).rejects.toMatchObject({
          status: 409,
        })
      }
    })

    test('no one may decide while the directory does not answer', async () => {
      const office = await open()
      const { id } = await office.ask()
      office.people.failure = new GatewayError('TARGET_UNREACHABLE', 'down')
      await expect(office.desk().decide(boss, { approval: id, approve: true })).rejects.toMatchObject({ status: 503 })
      office.people.failure = undefined
      await office.desk().decide(boss, { approval: id, approve: true })
    })

    test('D10: approve racing the end of the run: only one of them happens', async () => {
      const office = await open()
      for (let round = 0; round < 10; round++) {
        const { id, run } = await office.ask()
        const [decided] = await Promise.allSettled([
          office.desk(office.one).decide(boss, { approval: id, approve: true }),
          office.two.runs.cancel({
            id: run,
            fence: 0,
            cancellation: { by: 'admin' },
            onlyUntouched: false,
            outcome: 'cancelled',
            effects: {},
          }),
        ])
        const state = (await office.one.runs.get(run))?.state
        if (decided.status === 'fulfilled') expect(state).toBe('ready')
        else {
          expect(decided.reason).toMatchObject({ status: 409 })
          expect(state).toBe('cancelled')
          expect(await office.desk().get(boss, id)).toMatchObject({ state: 'cancelled', mayDecide: false })
        }
      }
    })

    test('an approval older than 14 days is listed and decided', async () => {
      const office = await open()
      const { id } = await office.ask()
      await office.sql(`update approvals set opened = opened - ${20 * day}`)
      await office.sql(`update runs set created = created - ${20 * day}, updated = updated - ${20 * day}`)
      expect((await office.desk().list(boss, { limit: 5 })).approvals).toMatchObject([{ id }])
      await office.desk().decide(boss, { approval: id, approve: true })
      expect((await office.one.approvals.get(id))?.state).toBe('approved')
    })
  })

  describe('separation of duties', () => {
    test('D11: requester, subject and caller are not asked and may not decide', async () => {
      const office = await open()
      for (const who of ['asker', 'subject', 'caller']) office.people.put(who, ['managers'])
      const { id } = await office.ask({}, { requester: 'Asker', subject: 'Subject', caller: 'Caller' })
      expect(await office.approversOf(id)).toEqual(['boss', 'chief'])
      for (const login of ['ASKER', 'subject', 'caller']) {
        await expect(office.desk().decide(userRef(login), { approval: id, approve: true })).rejects.toMatchObject({
          code: 'ACCESS_DENIED',
        })
        expect(await office.desk().get(userRef(login), id)).toMatchObject({ mayDecide: false })
        const linked = { ...userRef(login), login: 'alias', dn: office.people.userDn(login) }
        await expect(office.desk().decide(linked, { approval: id, approve: true })).rejects.toMatchObject({
          code: 'ACCESS_DENIED',
        })
      }
    })

    test("a user with two logins can't approve their own request", async () => {
      const office = await open()
      office.people.put('ann', ['managers'])
      // Requested through an external issuer that knows the user by an opaque subject; decided through the form.
      const { id } = await office.ask({}, { requester: 'sub-0815', who: { requester: userRef('ann').identity } })
      expect(await office.approversOf(id)).toEqual(['boss', 'chief'])
      await expect(office.desk().decide(userRef('ann'), { approval: id, approve: true })).rejects.toMatchObject({
        code: 'ACCESS_DENIED',
      })
      expect((await office.desk().list(userRef('ann'), { limit: 5 })).approvals).toEqual([])
    })

    test('another user with the login of the requester may decide', async () => {
      const office = await open()
      const namesake = entryIdentity('contractors', '1')
      const { id } = await office.ask({}, { requester: 'boss', who: { requester: namesake } })
      expect(await office.approversOf(id)).toEqual(['boss', 'chief'])
      await office.desk().decide(boss, { approval: id, approve: true })
    })

    test('a requester without a directory entry is also barred by login', async () => {
      const office = await open()
      const outside = issuerIdentity('https://issuer.example', 'boss')
      const { id } = await office.ask({}, { requester: 'boss', who: { requester: outside } })
      expect(await office.approversOf(id)).toEqual(['chief'])
      await expect(office.desk().decide(boss, { approval: id, approve: true })).rejects.toMatchObject({
        code: 'ACCESS_DENIED',
      })
    })

    test('a caller without an entry is not the directory user with that login', async () => {
      const office = await open()
      const { id } = await office.ask()
      const outside = { identity: issuerIdentity('https://issuer.example', 'boss'), login: 'boss' }
      expect((await office.desk().list(outside, { limit: 5 })).approvals).toEqual([])
      expect(await office.desk().get(outside, id)).toBeUndefined()
      await expect(office.desk().decide(outside, { approval: id, approve: true })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      })
    })

    test('approvers see, in the portal and by mail, who submitted a request on behalf of another user', async () => {
      const office = await open()
      const { id } = await office.ask({}, { requester: 'asker', caller: 'svc' })
      await office.ask({}, { requester: 'asker', caller: 'ASKER' })
      await office.ask({}, { requester: 'asker' })
      expect((await office.desk().list(boss, { limit: 5 })).approvals[0]).toMatchObject({
        run: { requester: 'asker', caller: 'svc' },
      })
      expect(await office.desk().get(boss, id)).toMatchObject({ run: { requester: 'asker', caller: 'svc' } })
      const line = 'Requested in the name of asker, submitted by svc.'
      const said = async () => (await office.one.mails.claim(500, minute)).map(({ text }) => text.includes(line))
      expect((await said()).filter(Boolean)).toHaveLength(2)
      await office.sql(`update approvals set opened = opened - ${2 * day}`)
      await office.desk().remind({ openForMillis: day, key: 'k' })
      expect((await said()).filter(Boolean)).toHaveLength(2)
    })

    test('they may not decide under another name either', async () => {
      const office = await open()
      office.people.put('ann', ['managers'], { mail: ['Ann@x.org', 'ann.b@x.org'] })
      const others = [
        { subject: '4711', uid: 'ann' },
        { subject: 'ANN.B@x.org' },
        { requester: 'ann@X.org' },
        { caller: 'ann@x.org' },
        { subject: ' Ann ' },
        { requester: 'ａｎｎ' },
      ]
      for (const about of others) {
        const { id } = await office.ask({}, about)
        expect(await office.approversOf(id)).toEqual(['boss', 'chief'])
        const decided = office.desk().decide(userRef('ann'), { approval: id, approve: true })
        await expect(decided).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
      }
      await expect(
        office.ask({ approvers: [office.group('chiefs')] }, { subject: 'chief@x.org' }),
      ).rejects.toMatchObject({ code: 'NO_APPROVERS' })
    })

    test('an approval may allow their decision', async () => {
      const office = await open()
      office.people.put('asker', ['managers'])
      const { id } = await office.ask({ allowSelf: true })
      expect((await office.desk().list(userRef('asker'), { limit: 5 })).approvals).toHaveLength(1)
      expect(await office.desk().decide(userRef('asker'), { approval: id, approve: true })).toMatchObject({
        state: 'approved',
      })
    })
  })

  describe('no approvers', () => {
    test('D23: is an error with its own code, even if only the requester would be left', async () => {
      const office = await open()
      await expect(office.ask({ approvers: [] })).rejects.toMatchObject({ code: 'NO_APPROVERS' })
      await expect(office.ask({ approvers: [office.group('nobody')] })).rejects.toMatchObject({ code: 'NO_APPROVERS' })
      await expect(office.ask({}, { requester: 'boss', subject: 'chief' })).rejects.toMatchObject({
        code: 'NO_APPROVERS',
      })
    })

    test('assigns the approval to the fallback approvers', async () => {
      const office = await open()
      const { id } = await office.ask({ approvers: [office.group('nobody')], failure: [office.group('chiefs')] })
      expect(await office.approversOf(id)).toEqual(['chief'])
      await office.desk().decide(chief, { approval: id, approve: true })
    })

    test('assigns the approval to the first escalation that applies and finds someone', async () => {
      const office = await open()
      const approvers = [office.group('nobody')]
      const escalations = [escalation(day, [office.group('none')]), escalation(day, [office.group('chiefs')])]
      const { id } = await office.ask({ approvers, escalations })
      expect(await office.approversOf(id)).toEqual(['chief'])
      expect(await office.desk().decide(chief, { approval: id, approve: true })).toMatchObject({ state: 'approved' })
      const refused = office.ask({ approvers, escalations }, { requester: 'chief' })
      await expect(refused).rejects.toMatchObject({ code: 'NO_APPROVERS' })
    })

    test('rejects too many approvers as well', async () => {
      const office = await open()
      for (let i = 0; i < 1000; i++) office.people.put(`crowd${i}`)
      const filter = { scope: 'filter', constraint: '(mail=crowd*)', filter: parseFilter('(mail=crowd*)') } as const
      await expect(office.ask({ approvers: [filter] })).rejects.toMatchObject({ code: 'NO_APPROVERS' })
      const { id } = await office.ask({ escalations: [escalation(1, [filter])], failure: [office.group('chiefs')] })
      await until(async () => (await office.sweep()) > 0)
      expect(await office.approversOf(id)).toEqual(['chief'])
    })
  })

  describe('deputies', () => {
    const soon = () => ({ starts: new Date(Date.now() - minute), ends: new Date(Date.now() + day) })

    test('get mails, see approvals, and decide on behalf; the audit names both users', async () => {
      const office = await open()
      await office.desk().delegate(boss, { deputy: 'DEPUTY', ...soon() })
      const { id } = await office.ask()
      expect(await office.mailedTo()).toEqual(['boss@x.org', 'chief@x.org', 'deputy@x.org'])
      const deputy = userRef('Deputy')
      expect(await office.desk().represents(deputy)).toMatchObject([{ login: 'boss' }])
      expect((await office.desk().list(deputy, { limit: 5 })).approvals).toMatchObject([{ id }])
      expect(await office.desk().get(deputy, id)).toMatchObject({ mayDecide: true, onBehalfOf: 'boss' })
      await office.desk().decide(deputy, { approval: id, approve: true, comment: 'for boss' })
      expect(await office.one.approvals.get(id)).toMatchObject({
        decision: { by: userRef('Deputy'), onBehalfOf: 'boss' },
      })
      expect((await office.audited()).slice(1)).toEqual(['boss|Deputy|approved|for boss'])
    })

    test('may not decide as requester or subject, nor for an approver who is one', async () => {
      const office = await open()
      const { id: asked } = await office.ask({}, { requester: 'deputy' })
      await office.desk().delegate(boss, { deputy: 'deputy', ...soon() })
      const deputy = userRef('deputy')
      expect((await office.desk().list(deputy, { limit: 5 })).approvals).toEqual([])
      await expect(office.desk().decide(deputy, { approval: asked, approve: true })).rejects.toMatchObject({
        code: 'ACCESS_DENIED',
      })
      const { id: allowed } = await office.ask({ allowSelf: true }, { requester: 'deputy' })
      await expect(office.desk().decide(deputy, { approval: allowed, approve: true })).rejects.toMatchObject({
        code: 'ACCESS_DENIED',
      })
      const { id: bosses } = await office.ask({}, { requester: 'boss' })
      await expect(office.desk().decide(deputy, { approval: bosses, approve: true })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      })
    })

    test("can't delegate further, and have no more rights than the approver they represent", async () => {
      const office = await open()
      office.people.put('third')
      await office.desk().delegate(boss, { deputy: 'deputy', ...soon() })
      await office.desk().delegate(userRef('deputy'), { deputy: 'third', ...soon() })
      const { id } = await office.ask()
      await expect(office.desk().decide(userRef('third'), { approval: id, approve: true })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      })
      office.people.put('boss')
      await expect(office.desk().decide(userRef('deputy'), { approval: id, approve: true })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      })
    })

    test('periods are set, listed and ended by their owner, and audited', async () => {
      const office = await open()
      const period = await office.desk().delegate(boss, { deputy: 'deputy', ...soon() })
      expect(await office.desk().delegations(boss)).toEqual([period])
      await expect(office.desk().endDelegation(chief, period.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await office.desk().endDelegation(boss, period.id)
      await expect(office.desk().endDelegation(boss, period.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      expect(await office.desk().represents(userRef('deputy'))).toEqual([])
      const until = `deputy from ${period.starts.toISOString()} to ${period.ends.toISOString()}`
      expect(await office.audited()).toEqual([`boss||${until}|`, 'boss||deputy|'])
      expect((await office.one.audit.verify()).problems).toEqual([])
    })

    test.each([
      ['oneself', { deputy: 'BOSS' }],
      ['a stranger', { deputy: 'nobody' }],
      ['an empty name', { deputy: '' }],
      ['a period that is over', { ends: new Date(Date.now() - 1000), starts: new Date(0) }],
      ['a period that ends before it starts', { starts: new Date(Date.now() + 2 * day) }],
      ['a period without end', { ends: new Date(Date.now() + 400 * day) }],
      ['a time that is none', { ends: new Date(Number.NaN) }],
    ])('%s is rejected', async (_, more) => {
      const office = await open()
      const period = { deputy: 'deputy', ...soon(), ...more }
      await expect(office.desk().delegate(boss, period)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      expect(await office.desk().delegations(boss)).toEqual([])
    })
  })

  describe('assignment', () => {
    const change = (approval: string, more: Partial<ApprovalAssignment> = {}): ApprovalAssignment => ({
      approval,
      version: 1,
      to: 'Deputy',
      by: userRef('root'),
      reason: 'both are away',
      ...more,
    })

    test('gives the approval to one user, who alone may decide it, and is audited and mailed', async () => {
      const office = await open()
      const { id } = await office.ask()
      await office.mailedTo()
      const desk = office.desk()
      const changed = await desk.assign(change(id))
      expect(changed).toMatchObject({ version: 2, approvers: [userRef('deputy')] })
      expect(await office.audited()).toEqual(['root||reassigned to deputy|both are away'])
      expect(await office.mailedTo()).toEqual(['deputy@x.org'])
      expect((await desk.listOpen({ approver: 'deputy', limit: 5 })).approvals).toMatchObject([{ id }])
      expect((await desk.listOpen({ approver: 'boss', limit: 5 })).approvals).toEqual([])
      await expect(desk.decide(boss, { approval: id, approve: true })).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await office.desk(office.two).remind({ openForMillis: 0, key: 'k' })
      expect(await office.approversOf(id)).toEqual(['deputy'])
      expect(await desk.decide(userRef('deputy'), { approval: id, approve: true })).toMatchObject({ state: 'approved' })
      await expect(desk.assign(change(id, { version: 3 }))).rejects.toMatchObject({ code: 'CONFLICT' })
    })

    test('is passed on by the user who has it', async () => {
      const office = await open()
      const { id } = await office.ask()
      await office.desk().assign(change(id))
      await office.desk().reassign(userRef('deputy'), { approval: id, to: 'chief' })
      const vote = { approval: id, approve: true }
      await expect(office.desk().decide(userRef('deputy'), vote)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      expect(await office.desk().decide(chief, vote)).toMatchObject({ state: 'approved' })
    })

    test('is for active users of the directory who are not involved, and not for the operator', async () => {
      const office = await open()
      const { id } = await office.ask({ allowSelf: true }, { caller: 'boss' })
      const desk = office.desk()
      for (const to of ['asker', 'SUBJECT', 'boss', 'nobody', '']) {
        await expect(desk.assign(change(id, { to }))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      }
      const own = desk.assign(change(id, { by: userRef('deputy') }))
      await expect(own).rejects.toMatchObject({
        code: 'BAD_REQUEST',
        publicText: expect.stringContaining('another user'),
      })
      await expect(desk.assign(change(id, { version: 7 }))).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
      await expect(desk.assign(change('none'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
      expect(await office.audited()).toEqual([])
      expect(await office.approversOf(id)).toEqual(['boss', 'chief'])
    })

    test('bars the operator from the decision, now and after escalations, also as a deputy', async () => {
      const office = await open()
      office.people.put('root', ['chiefs'])
      const root = userRef('root')
      const later = { starts: new Date(Date.now() - minute), ends: new Date(Date.now() + day) }
      const { id } = await office.ask({ allowSelf: true, escalations: [escalation(1, [office.group('chiefs')])] })
      const vote = { approval: id, approve: true }
      await office.desk().assign(change(id))
      await office.mailedTo()
      await office.desk().delegate(userRef('deputy'), { deputy: 'root', ...later })
      await expect(office.desk().decide(root, vote)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
      expect((await office.desk().list(root, { limit: 5 })).approvals).toEqual([])
      await office.desk().remind({ openForMillis: 0, key: 'k' })
      expect(await office.mailedTo()).toEqual(['deputy@x.org'])
      const back = office.desk().reassign(userRef('deputy'), { approval: id, to: 'root' })
      await expect(back).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      await until(async () => (await office.sweep()) === 1)
      expect(await office.approversOf(id)).toEqual(['chief'])
      await office.desk().delegate(chief, { deputy: 'root', ...later })
      await expect(office.desk().decide(root, vote)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
      expect(await office.desk().decide(chief, vote)).toMatchObject({ state: 'approved' })
    })

    test('is not for operators who are involved', async () => {
      const office = await open()
      const { id } = await office.ask({ allowSelf: true }, { caller: 'boss' })
      for (const login of ['asker', 'subject', 'boss']) {
        const assigned = office.desk().assign(change(id, { by: userRef(login) }))
        await expect(assigned).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
      }
    })

    test('ends with the next escalation', async () => {
      const office = await open()
      const { id } = await office.ask({ escalations: [escalation(1, [office.group('chiefs')])] })
      await office.desk().assign(change(id))
      await until(async () => (await office.sweep()) === 1)
      expect(await office.approversOf(id)).toEqual(['chief'])
      const vote = { approval: id, approve: true }
      await expect(office.desk().decide(userRef('deputy'), vote)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      expect(await office.desk().decide(chief, vote)).toMatchObject({ state: 'approved' })
    })
  })

  describe('escalation', () => {
    test('due during downtime happens at the next start, in order, in any process', async () => {
      const office = await open()
      const { id } = await office.ask({
        approvers: [office.group('managers')],
        escalations: [
          escalation(1, [{ scope: 'dn', constraint: '', dn: office.people.userDn('deputy') }]),
          escalation(1, [office.group('chiefs')]),
        ],
      })
      await office.mailedTo()
      await until(async () => {
        await office.sweep(office.two)
        return (await office.one.approvals.get(id))?.escalation === 2
      })
      expect(await office.one.approvals.get(id)).toMatchObject({ approvers: [userRef('chief')], state: 'open' })
      await expect(office.desk().decide(boss, { approval: id, approve: true })).rejects.toMatchObject({ status: 404 })
      expect((await office.audited()).at(-1)).toBe('gatehouse||escalated to chief|')
      expect(await office.mailedTo()).toContain('chief@x.org')
      await office.desk().decide(chief, { approval: id, approve: true })
      expect(await office.sweep()).toBe(0)
    })

    test('D9: counts from the opening, by the clock of the store, not of processes', async () => {
      const office = await open()
      office.skewMillis = -30 * day
      const { id } = await office.ask({ escalations: [escalation(minute, [office.group('chiefs')])] })
      office.skewMillis = 30 * day
      expect(await office.sweep()).toBe(0)
      expect((await office.one.approvals.get(id))?.escalation).toBe(0)
      office.skewMillis = -30 * day
      const { id: due } = await office.ask({ escalations: [escalation(1, [office.group('chiefs')])] })
      await until(async () => (await office.sweep()) === 1)
      expect((await office.one.approvals.get(due))?.escalation).toBe(1)
    })

    test('approve racing escalation: one decides, and the run continues once', async () => {
      const office = await open()
      for (let round = 0; round < 10; round++) {
        const { id } = await office.ask({ escalations: [escalation(1, [office.group('chiefs')])] })
        await until(async () => (await office.one.timers.claim(1, 0)).length === 1)
        const [decided] = await Promise.allSettled([
          office.desk(office.one).decide(boss, { approval: id, approve: true }),
          office.sweep(office.two),
        ])
        if (decided.status === 'rejected') {
          expect(['CONFLICT', 'NOT_FOUND']).toContain((decided.reason as GatewayError).code)
          expect(await office.one.approvals.get(id)).toMatchObject({ state: 'open', approvers: [userRef('chief')] })
          await office.desk().decide(chief, { approval: id, approve: true })
        }
      }
      expect((await office.one.runs.list({ states: ['ready'], limit: 50 })).runs).toHaveLength(10)
      expect(await office.one.timers.claim(50, minute)).toEqual([])
    })

    test('a condition that does not hold keeps the approvers', async () => {
      const office = await open()
      const seen: string[] = []
      office.authorizations.set('late', {
        isAuthorized: ({ uid }, [answer]) => {
          seen.push(uid)
          return answer === 'yes'
        },
      })
      const late = (answer: string): Rule => ({ scope: 'custom', constraint: 'late', name: 'late', params: [answer] })
      const { id } = await office.ask({
        escalations: [escalation(1, [office.group('chiefs')], { onlyIf: late('no') })],
      })
      await until(async () => (await office.sweep()) > 0)
      expect(await office.approversOf(id)).toEqual(['boss', 'chief'])
      expect(seen).toEqual(['subject'])
    })

    test('a custom authorization knows whom the request is about: at the opening, at an escalation and at the decision', async () => {
      const office = await open()
      const asked: string[] = []
      const note = (when: string, about: UserRef | undefined) =>
        asked.push(`${when} ${about?.login} ${about?.identity}`)
      office.authorizations.set('superior', {
        isAuthorized: ({ uid }, [who], about) => {
          note('decide', about)
          return uid === who
        },
        listPossibleApprovers: async ([who = ''], about) => {
          note('list', about)
          return [who]
        },
      })
      const superior = (who: string): Rule => ({
        scope: 'custom',
        constraint: 'superior',
        name: 'superior',
        params: [who],
      })
      const { identity } = userRef('subject')
      const { id } = await office.ask(
        { approvers: [superior('boss')], escalations: [escalation(1, [superior('chief')])] },
        { who: { subject: identity } },
      )
      expect(await office.approversOf(id)).toEqual(['boss'])
      await until(async () => (await office.sweep(office.two)) > 0)
      expect(await office.approversOf(id)).toEqual(['chief'])
      await office.desk(office.two).decide(chief, { approval: id, approve: true })
      expect(new Set(asked)).toEqual(new Set([`list subject ${identity}`, `decide subject ${identity}`]))
    })

    test('that finds no approver assigns the fallback approvers or changes nothing, and is audited', async () => {
      const office = await open()
      const nobody = escalation(1, [office.group('nobody')])
      const { id: assigned } = await office.ask({ escalations: [nobody], failure: [office.group('chiefs')] })
      const { id: left } = await office.ask({ escalations: [nobody] })
      await until(async () => {
        await office.sweep()
        return (await office.audited()).length >= 2
      })
      expect(await office.approversOf(assigned)).toEqual(['chief'])
      expect(await office.one.approvals.get(left)).toMatchObject({
        approvers: [userRef('boss'), userRef('chief')],
        state: 'open',
      })
      expect(await office.audited()).toContain('gatehouse||escalation 1 found no approver|')
    })

    test('after the last one, the fallback approvers follow after the same time', async () => {
      const office = await open()
      const { id } = await office.ask({
        escalations: [escalation(1, [office.group('managers')])],
        failure: [office.group('chiefs')],
      })
      await until(async () => {
        await office.sweep()
        return (await office.one.approvals.get(id))?.escalation === 2
      })
      expect(await office.approversOf(id)).toEqual(['chief'])
    })

    test('is postponed while the directory does not answer', async () => {
      const office = await open()
      const { id } = await office.ask({ escalations: [escalation(1, [office.group('chiefs')])] })
      office.people.failure = new GatewayError('TARGET_UNREACHABLE', 'down')
      await until(async () => (await office.sweep()) > 0)
      office.people.failure = undefined
      expect((await office.one.approvals.get(id))?.escalation).toBe(0)
      expect(await office.one.timers.claim(5, minute)).toEqual([])
    })
  })

  describe('reminders', () => {
    test('D23: start with the oldest, go out once per occasion, to the current approvers', async () => {
      const office = await open()
      const first = await office.ask()
      await office.ask()
      await office.mailedTo()
      office.skewMillis = 3 * day
      const remind = (key: string, limit: number) => office.desk().remind({ openForMillis: 2 * day, key, limit })
      expect(await remind('monday', 1)).toBe(1)
      const mails = await office.one.mails.claim(500, minute)
      expect(mails.map(({ run }) => run)).toEqual([first.run, first.run])
      expect(mails[0]?.text).toContain('"Access to the vault"')
      expect(mails[0]?.text).toContain('3 days')
      await remind('monday', 10)
      expect(await office.mailedTo()).toEqual(['boss@x.org', 'chief@x.org'])
      office.people.put('boss').put('new', ['managers'])
      expect(await remind('tuesday', 10)).toBe(2)
      expect(await office.mailedTo()).toEqual(['chief@x.org', 'chief@x.org', 'new@x.org', 'new@x.org'])
      expect((await office.desk().list(userRef('new'), { limit: 5 })).approvals).toHaveLength(2)
      office.skewMillis = 0
      expect(await remind('wednesday', 10)).toBe(0)
    })
  })

  describe('lists', () => {
    test('have pages of limited size, with each approval once', async () => {
      const office = await open()
      const ids: string[] = []
      for (let i = 0; i < 7; i++) ids.push((await office.ask()).id)
      const seen: string[] = []
      let after: string | undefined
      do {
        const page = await office.desk().list(boss, { limit: 3, ...(after === undefined ? {} : { after }) })
        expect(page.approvals.length).toBeLessThanOrEqual(3)
        seen.push(...page.approvals.map(({ id }) => id))
        after = page.next
      } while (after !== undefined)
      expect(seen).toEqual(ids)
    })

    test('D14: one page takes one query of the store, and none of the directory', async () => {
      const office = await open()
      for (let i = 0; i < 5; i++) await office.ask()
      office.people.failure = new Error('the directory is not to be asked')
      const { approvals } = office.one
      let asked = 0
      const listForApprovers = approvals.listForApprovers.bind(approvals)
      approvals.listForApprovers = (logins, page) => {
        asked++
        return listForApprovers(logins, page)
      }
      const desk = office.desk()
      expect((await desk.list(boss, { limit: 5 })).approvals).toHaveLength(5)
      expect(asked).toBe(1)
    })

    test('a deputy of more approvers than one listing allows still gets a list', async () => {
      const office = await open()
      const ends = new Date(Date.now() + day)
      for (let i = 0; i < 101; i++) {
        const period = { id: newId(), user: userRef(`away${i}`), deputy: userRef('boss'), starts: new Date(0), ends }
        await office.one.delegations.add(period)
      }
      await office.ask()
      expect((await office.desk().list(boss, { limit: 5 })).approvals).toHaveLength(1)
    })
  })
})

/** Bounded: timers that are due in a millisecond are due soon. */
async function until(done: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (await done()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error('it did not happen')
}
