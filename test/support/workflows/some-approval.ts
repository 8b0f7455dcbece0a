import { loginIdentity, type UserRef } from '#identity/identity.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { Approval } from '#workflows/record/approval.ts'
import { runHead } from './run-head.ts'

/** A user with only a login. */
export const byLogin = (login: string): UserRef => ({ login, identity: loginIdentity(login) })

/** With a part of its run's head. */
export type GivenApproval<A extends Approval = Approval> = Partial<Omit<A, 'run'>> & { readonly run?: Partial<RunHead> }

/** An open approval of the run `r`. */
export const someApproval = ({ run, ...more }: GivenApproval = {}): Approval => ({
  id: 'a',
  run: runHead({ id: 'r', workflow: 'join', subject: 'bob', requester: 'ann', ...run }),
  step: 1,
  label: 'Join the team',
  state: 'open',
  opened: new Date('2030-01-02T00:00:00Z'),
  escalation: 0,
  version: 1,
  approvers: [byLogin('boss')],
  allowSelf: false,
  rules: {},
  data: {},
  ...more,
})
