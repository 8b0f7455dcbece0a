import { formerIdentity, type UserRef } from '#identity/identity.ts'
import type { Approval } from '#workflows/record/approval.ts'

/** A user with only a login. */
export const byLogin = (login: string): UserRef => ({ login, identity: formerIdentity(login) })

/** An open approval of the run `r`. */
export const someApproval = (more: Partial<Approval> = {}): Approval => ({
  id: 'a',
  run: 'r',
  workflow: 'join',
  step: 1,
  label: 'Join the team',
  state: 'open',
  subject: 'bob',
  requestor: 'ann',
  who: {},
  opened: new Date('2030-01-02T00:00:00Z'),
  escalation: 0,
  version: 1,
  approvers: [byLogin('boss')],
  allowSelf: false,
  rules: {},
  data: {},
  ...more,
})
