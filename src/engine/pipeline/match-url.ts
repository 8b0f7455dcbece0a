import type { Step } from '#engine/pipeline/passage.ts'
import type { Routes } from '#engine/pipeline/routes.ts'
import { GatewayError } from '#kernel/errors.ts'

export const matchUrl =
  (routes: Routes): Step =>
  (passage) => {
    const match = routes.find(passage.request.host, passage.request.path)
    if (match === undefined) {
      throw new GatewayError('NOT_FOUND', `no URL for host ${passage.request.host} and path ${passage.request.path}`, {
        publicText: 'No application is configured for this path.',
      })
    }
    passage.application = match.application
    passage.url = match
    passage.errors = match.url.errors
    return undefined
  }
