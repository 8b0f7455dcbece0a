import { type QueryClient, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import type { MarkedItems, MarkedKind, RecentUse } from '#features/portal/contract/main.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { call } from './call.ts'
import { main } from './main.ts'

export const marksQuery = queryOptions({
  queryKey: ['favorites'],
  queryFn: ({ signal }) => call<MarkedItems>(main(mainRoutes.listFavorites), { signal }),
  staleTime: 60_000,
})

interface Mark {
  readonly kind: MarkedKind
  readonly name: string
  readonly label: string
  readonly on: boolean
}

/** Shown at once; reverted if the gateway rejects it. */
export function useMark() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ kind, name, on }: Mark) =>
      call<void>(main(on ? mainRoutes.addFavorite : mainRoutes.removeFavorite, { kind, name })),
    onMutate: async (mark) => {
      await client.cancelQueries({ queryKey: marksQuery.queryKey })
      const before = client.getQueryData(marksQuery.queryKey)
      if (before !== undefined) client.setQueryData(marksQuery.queryKey, withMark(before, mark))
      return before
    },
    onError: (_error, _mark, before) => client.setQueryData(marksQuery.queryKey, before),
    onSettled: () => client.invalidateQueries({ queryKey: marksQuery.queryKey }),
  })
}

function withMark(items: MarkedItems, { kind, name, label, on }: Mark): MarkedItems {
  const others = items.favorites.filter((one) => one.kind !== kind || one.name !== name)
  const at = new Date().toISOString()
  return { ...items, favorites: on ? [...others, { kind, name, label, at }] : others }
}

/** Also sent when the browser leaves for the link. Failures are ignored. */
export function noteUse(client: QueryClient, use: RecentUse): void {
  call<void>(main(mainRoutes.noteUse), { body: use, now: true })
    .then(() => client.invalidateQueries({ queryKey: marksQuery.queryKey }))
    .catch(() => undefined)
}
