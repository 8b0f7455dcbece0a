import { queryOptions } from '@tanstack/react-query'
import { registerPaths } from '#features/registration/contract/paths.ts'
import type {
  InvitationOffer,
  RegisterChallenge,
  RegisterConfig,
  RegisterRequest,
  RegisterValues,
  SubmittedResponse,
} from '#features/registration/contract/register.ts'
import { settings } from '../app/settings.ts'
import { address, call } from './call.ts'

/** The contract's paths begin with `/register`, with which the API's own address ends. */
const registerAddress = (path: string, query?: Readonly<Record<string, string | undefined>>): string =>
  address(settings.apis.register ?? '', path.replace(/^\/register\//, '').split('/'), query)

/** An anonymous user cannot sign in again. */
const now = settings.apis.main === undefined

export const registerConfigQuery = queryOptions({
  queryKey: ['register', 'config'],
  queryFn: ({ signal }) => call<RegisterConfig>(registerAddress(registerPaths.config), { signal, now }),
  staleTime: 5 * 60_000,
  // The form must not change while a user fills it in.
  refetchOnWindowFocus: false,
})

export const valuesQuery = (name: string, search: string) =>
  queryOptions({
    queryKey: ['register', 'values', name, search],
    queryFn: ({ signal }) =>
      call<RegisterValues>(registerAddress(registerPaths.values, { name, search }), { signal, now }),
    staleTime: 60_000,
    retry: false,
  })

export const invitationQuery = (token: string) =>
  queryOptions({
    queryKey: ['register', 'invitation', token],
    queryFn: ({ signal }) =>
      call<InvitationOffer>(registerAddress(registerPaths.invitation, { token }), { signal, now }),
    staleTime: Number.POSITIVE_INFINITY,
  })

/** A new one each time: a solution counts once. */
export const fetchChallenge = (): Promise<RegisterChallenge> =>
  call<RegisterChallenge>(registerAddress(registerPaths.challenge), { now })

export const submitRegistration = (sent: RegisterRequest): Promise<SubmittedResponse> =>
  call<SubmittedResponse>(registerAddress(registerPaths.submit), { method: 'POST', body: sent, now })
