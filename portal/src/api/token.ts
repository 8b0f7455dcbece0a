import { queryOptions } from '@tanstack/react-query'
import { tokenPaths } from '#features/portal/contract/constants.ts'
import type { TokenConfig, TokenUser } from '#features/portal/contract/token.ts'
import { settings } from '../app/settings.ts'
import { address, call } from './call.ts'

const tokenAddress = (path: string): string => address(settings.apis.token ?? '', [path])

export const tokenConfigQuery = queryOptions({
  queryKey: ['token', 'config'],
  queryFn: ({ signal }) => call<TokenConfig>(tokenAddress(tokenPaths.config), { signal }),
  staleTime: 5 * 60_000,
})

/** Reading changes nothing; the shown tokens are dropped when the user leaves the page. */
export const tokenQuery = queryOptions({
  queryKey: ['token', 'user'],
  queryFn: ({ signal }) => call<TokenUser>(tokenAddress(tokenPaths.user), { signal }),
  gcTime: 0,
  staleTime: 0,
})

/** Creates new tokens. */
export const renewToken = (): Promise<TokenUser> =>
  call<TokenUser>(tokenAddress(tokenPaths.user), { method: 'POST', body: {} })
