import { queryOptions } from '@tanstack/react-query'
import { mainPaths } from '#features/portal/contract/constants.ts'
import type { GivenBackAccess, OwnAccess } from '#features/portal/contract/main-access.ts'
import { call } from './call.ts'
import { mainAddress } from './main.ts'

export const accessQuery = queryOptions({
  queryKey: ['access'],
  queryFn: ({ signal }) => call<OwnAccess>(mainAddress([mainPaths.access]), { signal }),
})

export const giveBack = (id: string): Promise<GivenBackAccess> =>
  call<GivenBackAccess>(mainAddress([mainPaths.access, id, 'return']), { method: 'POST' })
