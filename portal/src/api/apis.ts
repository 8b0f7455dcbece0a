import { queryOptions } from '@tanstack/react-query'
import { mainPaths } from '#features/portal/contract/constants.ts'
import type { ApiEntry, ApiList } from '#features/portal/contract/main-apis.ts'
import { call, callForResponse } from './call.ts'
import { saveFile } from './download.ts'
import { mainAddress } from './main.ts'

const staleTime = 5 * 60_000

export const apisQuery = queryOptions({
  queryKey: ['apis'],
  queryFn: ({ signal }) => call<ApiList>(mainAddress([mainPaths.apis]), { signal }),
  staleTime,
})

/** The OpenAPI document of an API. */
export const apiDocumentQuery = (name: string) =>
  queryOptions({
    queryKey: ['apis', name],
    queryFn: ({ signal }) => call<unknown>(mainAddress([mainPaths.apis, name, 'openapi.json']), { signal }),
    staleTime,
  })

export async function downloadApiDocument(name: string, file: ApiEntry['documents'][number]): Promise<void> {
  const response = await callForResponse(mainAddress([mainPaths.apis, name, file]))
  saveFile(await response.blob(), `${name}-${file}`)
}
