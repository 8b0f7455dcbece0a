import * as z from 'zod'
import { GatewayError } from '#kernel/errors.ts'
import { placeAtSegment } from '#sdk/api/api-description.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Returns how many minutes a session has left, without using it. */
export default defineFilter({
  className: 'filters.CheckSession',
  aliases: ['com.tremolosecurity.proxy.filters.CheckSession'],
  ...withParameters({
    applicationName: text({
      about: 'The Application of the session.',
      required: true,
      reference: 'application',
    }),
  }),
  answers: true,
  leavesSession: true,
  summarize: ({ applicationName }) => [{ label: 'session of', value: applicationName }],
  api: ({ applicationName }) =>
    checkSessionApi.served(placeAtSegment, { users: checkSessionApi, sessionOf: applicationName }),
  create: ({ applicationName }, { sessions }) => ({
    handle: (exchange) => checkSessionApi.answer({ applicationName, sessions }, exchange, ''),
  }),
})

interface CheckedSession extends Pick<FilterHost, 'sessions'> {
  readonly applicationName: string
}

export const checkSessionApi = new ServedApi<CheckedSession>({
  title: 'Session check API',
  version: '1.0.0',
  answers: { SessionState: z.object({ minsLeft: z.int() }), Errors: mainErrors },
  bodies: {},
  failure: { description: 'What is wrong', schema: 'Errors' },
  operations: {
    checkSession: {
      route: 'GET',
      summary: 'How many minutes the session of the caller has left, without using it',
      description: 'The session cookie of the application is the credential.',
      answer: 'SessionState',
      failures: { '401': 'There is no session' },
      handle: async ({ applicationName, sessions }, { request }) => {
        const minsLeft = await sessions.minutesLeft(applicationName, request)
        if (minsLeft === undefined) throw new GatewayError('AUTH_REQUIRED', 'there is no session')
        return answer({ minsLeft })
      },
    },
  },
})
