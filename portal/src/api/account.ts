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
import * as routes from '#features/account/contract/routes.ts'
import { settings } from '../app/settings.ts'
import { type ApiRequest, apiRequest, call, type Given } from './call.ts'

type AccountRoute = (typeof routes)[keyof typeof routes]

/** A call of the Account API. */
const account = <R extends AccountRoute>(route: R, ...given: Given<R>): ApiRequest =>
  apiRequest(settings.apis.account ?? '', route, given)

export const accountQuery = queryOptions({
  queryKey: ['account', 'self'],
  queryFn: ({ signal }) => call<AccountView>(account(routes.getAccount), { signal }),
})

export const changePassword = (sent: ChangePassword): Promise<EndedSessions> =>
  call<EndedSessions>(account(routes.changePassword), { body: sent })

export const sessionsQuery = queryOptions({
  queryKey: ['account', 'sessions'],
  queryFn: ({ signal }) => call<AccountSessions>(account(routes.listSessions), { signal }),
})

export const endSession = (id: string): Promise<void> => call<void>(account(routes.endSession, { id }))

export const endOtherSessions = (): Promise<EndedSessions> => call<EndedSessions>(account(routes.endOtherSessions))

export const factorsQuery = queryOptions({
  queryKey: ['account', 'factors'],
  queryFn: ({ signal }) => call<AccountFactors>(account(routes.listFactors), { signal }),
})

export const renameFactor = ({ id, name }: Pick<AccountFactor, 'id' | 'name'>): Promise<void> =>
  call<void>(account(routes.renameFactor, { id }), { body: { name } })

export const removeFactor = (id: string): Promise<void> => call<void>(account(routes.removeFactor, { id }))

export const beginTotp = (): Promise<TotpEnrolment> => call<TotpEnrolment>(account(routes.beginTotp), { body: {} })

export const confirmTotp = (sent: ConfirmTotp): Promise<EnrolledFactor> =>
  call<EnrolledFactor>(account(routes.confirmTotp), { body: sent })

export const beginPasskey = (): Promise<PasskeyEnrolment> =>
  call<PasskeyEnrolment>(account(routes.beginPasskey), { body: {} })

export const confirmPasskey = (sent: ConfirmPasskey): Promise<EnrolledFactor> =>
  call<EnrolledFactor>(account(routes.confirmPasskey), { body: sent })

export const renewRecoveryCodes = (): Promise<RecoveryCodes> =>
  call<RecoveryCodes>(account(routes.renewRecoveryCodes), { body: {} })

/** The address where a browser signs in again before it changes second factors. */
export const stepUpAddress = (): string => account(routes.stepUp).address
