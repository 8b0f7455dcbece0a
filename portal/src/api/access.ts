import { queryOptions } from '@tanstack/react-query'
import type { GivenBackAccess, OwnAccess } from '#features/portal/contract/main-access.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { call } from './call.ts'
import { main } from './main.ts'

export const accessQuery = queryOptions({
  queryKey: ['access'],
  queryFn: ({ signal }) => call<OwnAccess>(main(mainRoutes.listAccess), { signal }),
})

export const giveBack = (id: string): Promise<GivenBackAccess> =>
  call<GivenBackAccess>(main(mainRoutes.giveBackAccess, { id }))
