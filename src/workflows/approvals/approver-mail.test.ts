import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { MailChoices } from '#mail/mail-choices.ts'
import { NotificationStore } from '#mail/notification-store.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { runHead } from '#testing/workflows/run-head.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { type ApproverMailParts, approverMails } from './approver-mail.ts'
import type { ApproverFinder } from './approvers.ts'

const approver = (login: string, more: Readonly<Record<string, readonly string[]>> = {}) => {
  const { identity } = userRef(login)
  const attributes = Attributes.from({ uid: [login], mail: [`${login}@example.com`], ...more })
  return { login, identity, entry: { dn: Dn.of(['uid', login], ['o', 'x']), identity, attributes } }
}

const parts = {
  delegations: { deputiesOf: async () => [] },
  rateLimits: new MemoryRateLimits(() => new Date(0)),
  finder: { nameOf: async ({ login }: { login: string }) => login } as Partial<ApproverFinder> as ApproverFinder,
  linksFor: async ({ id, version }, user, texts) => [
    {
      label: texts('decide.approve'),
      url: `https://gate.test/${id}/${version}/${user?.login ?? 'anyone'}`,
      style: 'primary',
    },
  ],
} as Partial<ApproverMailParts> as ApproverMailParts

const about = {
  subject: 'mail.approval',
  label: 'Vault',
  run: runHead({ requester: 'ada' }),
  step: 2,
  occasion: 'a-1',
  approval: { id: 'a-1', version: 1 },
  parties: { involved: { identities: [], names: [] } },
} as const
const mail = { text: 'ada asks.', address: 'mail' }
const both = [approver('boss'), approver('chief')]

test('a channel gets one message without the links of an approver, beside the mails', async () => {
  const messages = await approverMails(both, { ...mail, notifier: 'n', channel: 'slack' }, about, parts)
  expect(messages.map(({ recipient, notifier }) => [recipient, notifier])).toEqual([
    ['boss@example.com', 'n'],
    ['chief@example.com', 'n'],
    ['#slack', 'slack'],
  ])
  expect(messages[0]?.text).toContain('https://gate.test/a-1/1/boss')
  expect(messages[0]).not.toHaveProperty('links')
  expect(messages[2]).toMatchObject({
    subject: 'Approval needed: Vault',
    text: 'ada asks.',
    links: [{ label: 'Approve', url: 'https://gate.test/a-1/1/anyone', style: 'primary' }],
  })
  expect(new Set(messages.map(({ id }) => id)).size).toBe(3)
})

test('the message to a channel has the same id in every attempt, and another one on another occasion', async () => {
  const idOf = async (occasion: string) =>
    (await approverMails([], { ...mail, channel: 'slack' }, { ...about, occasion }, parts)).map(({ id }) => id)
  expect(await idOf('a-1')).toEqual(await idOf('a-1'))
  expect(await idOf('a-1')).not.toEqual(await idOf('a-1 reminder 1'))
})

test('no channel gets no message', async () => {
  expect(await approverMails(both, mail, about, parts)).toHaveLength(2)
})

test('approvers who chose another time get no mail at once, unless it is required; the channel stays', async () => {
  const store = new NotificationStore(memoryDatabase())
  await store.save(userRef('boss').identity, { choices: { approval: 'never' } })
  const choices = new MailChoices(store, { jobs: new Map() })
  const recipients = async (more: object = {}) =>
    (await approverMails(both, { ...mail, channel: 'slack', ...more }, about, { ...parts, choices })).map(
      ({ recipient }) => recipient,
    )
  expect(await recipients()).toEqual(['chief@example.com', '#slack'])
  expect(await recipients({ required: true })).toEqual(['boss@example.com', 'chief@example.com', '#slack'])
})

test('a digest that no job sends is mailed at once', async () => {
  const store = new NotificationStore(memoryDatabase())
  await store.save(userRef('boss').identity, { choices: { approval: 'digest' } })
  const choices = new MailChoices(store, { jobs: new Map() })
  expect(await approverMails(both, mail, about, { ...parts, choices })).toHaveLength(2)
})

test('each approver reads the mail in their language, and the configured text as it is', async () => {
  const store = new NotificationStore(memoryDatabase())
  await store.save(userRef('chef').identity, { choices: {}, language: 'fr' })
  const choices = new MailChoices(store, { jobs: new Map() })
  const approvers = [
    approver('boss'),
    approver('leiterin', { preferredLanguage: ['de-CH, en;q=0.5'] }),
    approver('chef', { preferredLanguage: ['de'] }),
    approver('nobody', { preferredLanguage: ['tlh', ''] }),
  ]
  const submitted = { ...about, run: runHead({ requester: 'ada', caller: 'svc' }) }
  const messages = await approverMails(approvers, { ...mail, channel: 'slack' }, submitted, { ...parts, choices })
  expect(messages.map(({ subject }) => subject)).toEqual([
    'Approval needed: Vault',
    'Genehmigung nötig: Vault',
    'Approbation nécessaire : Vault',
    'Approval needed: Vault',
    'Approval needed: Vault',
  ])
  const [english, german] = messages.map(({ text }) => text)
  expect(english).toMatch(/^ada asks\.\n\nRequested in the name of ada, submitted by svc\.\n\nApprove:\n/)
  expect(german).toMatch(/^ada asks\.\n\nBeantragt im Namen von ada, eingereicht von svc\.\n\nGenehmigen:\n/)
  expect(messages[4]).toMatchObject({ recipient: '#slack', links: [{ label: 'Approve' }] })
})
