import { GatewayError } from '#kernel/errors.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  applicationName: text({
    about: 'The Application of the session.',
    required: true,
    reference: 'application',
  }),
}

/** Returns how many minutes a session has left, without using it. */
export default defineFilter({
  className: 'filters.CheckSession',
  aliases: ['com.tremolosecurity.proxy.filters.CheckSession'],
  parameters,
  answers: true,
  leavesSession: true,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  summarize: ({ applicationName }) => [{ label: 'session of', value: applicationName }],
  create: ({ applicationName }, host) => ({
    async handle({ request }) {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'GET, HEAD' } })
      }
      const minsLeft = await host.sessions.minutesLeft(applicationName, request)
      if (minsLeft === undefined) throw new GatewayError('AUTH_REQUIRED', 'there is no session')
      return {
        status: 200,
        headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
        body: JSON.stringify({ minsLeft }),
      }
    },
  }),
})
