import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, type GatewayError } from '#kernel/errors.ts'
import { errorBody } from '#protocols/scim/scim-error.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { Journal } from '#sdk/journal.ts'
import { shownError, shownOperations, shownPath } from './journal-redaction.ts'
import type { Router } from './router.ts'
import { notesOf } from './scim-call.ts'

/** Workflow runs that one entry names. */
const maxRuns = 100

/** Writes down every call that reaches the gateway, answered or refused. What a client sent as values is left out. */
export function journaled(router: Router, journal: Journal, clock: Clock): Router {
  return async (exchange) => {
    const time = clock()
    const began = performance.now()
    const add = (status: number, error?: GatewayError): void => {
      journal.add({ time, ...callFields(exchange), status, ...errorFields(error), millis: performance.now() - began })
    }
    try {
      const response = await router(exchange)
      add(response.status)
      return response
    } catch (thrown) {
      const error = asGatewayError(thrown)
      add(error.status, error)
      throw error
    }
  }
}

function callFields(exchange: Exchange) {
  const { request, subject } = exchange
  const { workflows, operations } = notesOf(exchange)
  return {
    requestId: request.id,
    caller: subject.uid,
    method: request.method,
    path: shownPath(request),
    workflows: workflows.slice(0, maxRuns),
    ...(operations === undefined ? {} : { operations: shownOperations(operations) }),
  }
}

function errorFields(error: GatewayError | undefined) {
  if (error === undefined) return {}
  const { scimType } = errorBody(error)
  return { error: shownError(error.publicText), ...(typeof scimType === 'string' ? { keyword: scimType } : {}) }
}
