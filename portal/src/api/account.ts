import { queryOptions } from '@tanstack/react-query'
import type {
  AccountFactor,
  AccountFactors,
  AccountSessions,
  AccountView,
  ChangePassword,
  ConfirmPasskey,
  ConfirmTotp,
  EndedSessions,
  EnrolledFactor,
  PasskeyEnrolment,
  RecoveryCodes,
  TotpEnrolment,
} from '#features/account/contract/account.ts'
import { accountPaths } from '#features/account/contract/paths.ts'
import { settings } from '../app/settings.ts'
import { address, call } from './call.ts'

/** Below the Account API; a path of the contract may have several parts. */
const accountAddress = (path: string, ...more: readonly string[]): string =>
  address(settings.apis.account ?? '', [...path.split('/'), ...more])

export const accountQuery = queryOptions({
  queryKey: ['account', 'self'],
  queryFn: ({ signal }) => call<AccountView>(accountAddress(accountPaths.account), { signal }),
})

export const changePassword = (sent: ChangePassword): Promise<EndedSessions> =>
  call<EndedSessions>(accountAddress(accountPaths.password), { method: 'POST', body: sent })

export const sessionsQuery = queryOptions({
  queryKey: ['account', 'sessions'],
  queryFn: ({ signal }) => call<AccountSessions>(accountAddress(accountPaths.sessions), { signal }),
})

export const endSession = (id: string): Promise<void> =>
  call<void>(accountAddress(accountPaths.sessions, id), { method: 'DELETE' })

export const endOtherSessions = (): Promise<EndedSessions> =>
  call<EndedSessions>(accountAddress(accountPaths.sessions), { method: 'DELETE' })

export const factorsQuery = queryOptions({
  queryKey: ['account', 'factors'],
  queryFn: ({ signal }) => call<AccountFactors>(accountAddress(accountPaths.factors), { signal }),
})

export const renameFactor = ({ id, name }: Pick<AccountFactor, 'id' | 'name'>): Promise<void> =>
  call<void>(accountAddress(accountPaths.factors, id), { method: 'PATCH', body: { name } })

export const removeFactor = (id: string): Promise<void> =>
  call<void>(accountAddress(accountPaths.factors, id), { method: 'DELETE' })

export const beginTotp = (): Promise<TotpEnrolment> =>
  call<TotpEnrolment>(accountAddress(accountPaths.totp), { method: 'POST', body: {} })

export const confirmTotp = (sent: ConfirmTotp): Promise<EnrolledFactor> =>
  call<EnrolledFactor>(accountAddress(accountPaths.confirmTotp), { method: 'POST', body: sent })

export const beginPasskey = (): Promise<PasskeyEnrolment> =>
  call<PasskeyEnrolment>(accountAddress(accountPaths.passkey), { method: 'POST', body: {} })

export const confirmPasskey = (sent: ConfirmPasskey): Promise<EnrolledFactor> =>
  call<EnrolledFactor>(accountAddress(accountPaths.confirmPasskey), { method: 'POST', body: sent })

export const renewRecoveryCodes = (): Promise<RecoveryCodes> =>
  call<RecoveryCodes>(accountAddress(accountPaths.recoveryCodes), { method: 'POST', body: {} })

/** The address where a browser signs in again before it changes second factors. */
export const stepUpAddress = (): string => accountAddress(accountPaths.stepUp)
