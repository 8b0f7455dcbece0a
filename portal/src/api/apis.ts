import { queryOptions } from '@tanstack/react-query'
import type { ApiEntry, ApiList } from '#features/portal/contract/main-apis.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { call, callForResponse } from './call.ts'
import { saveFile } from './download.ts'
import { main } from './main.ts'

const staleTime = 5 * 60_000

export const apisQuery = queryOptions({
  queryKey: ['apis'],
  queryFn: ({ signal }) => call<ApiList>(main(mainRoutes.listApis), { signal }),
  staleTime,
})

/** The OpenAPI document of an API. */
export const apiDocumentQuery = (name: string) =>
  queryOptions({
    queryKey: ['apis', name],
    queryFn: ({ signal }) =>
      call<unknown>(main(mainRoutes.getApiDocument, { name, document: 'openapi.json' }), { signal }),
    staleTime,
  })

export async function downloadApiDocument(name: string, file: ApiEntry['documents'][number]): Promise<void> {
  const response = await callForResponse(main(mainRoutes.getApiDocument, { name, document: file }))
  saveFile(await response.blob(), `${name}-${file}`)
}
