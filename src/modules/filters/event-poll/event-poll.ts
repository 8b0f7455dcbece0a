import { type JsonBounds, parseBoundedJson } from '#kernel/bounded-json.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { parsePollRequest } from '#protocols/secevent/poll-request.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, header } from '#sdk/filter/http.ts'
import { text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  stream: text({
    about: 'The stream, as the parameter `events` of a [gateway](filters.ScimGateway.md) names it.',
    required: true,
  }),
  waitSeconds: wholeNumber({
    about: 'How long a poll without `returnImmediately` waits for an event.',
    fallback: 30,
    max: 50,
  }),
}

const maxBody = 512 * 1024
/** Acknowledged ids and errors are limited by the reader of a poll. */
const bounds: JsonBounds = { depth: 8, members: 2_000, elements: 2_000, values: 20_000 }

/** Serves the events of one stream to a polling receiver (RFC 8936) until the receiver acknowledges them. */
export default defineFilter({
  className: 'filters.EventPoll',
  parameters,
  answers: true,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  summarize: ({ stream }) => [{ label: 'events', value: stream }],
  create: ({ stream, waitSeconds }, host) => ({
    async handle({ request, pathInfo }) {
      if (pathInfo !== '' && pathInfo !== '/') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
      if (request.method !== 'POST') {
        throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'POST' } })
      }
      const poll = parsePollRequest(await readBody(request))
      const { tokens, more } = await host.pollEvents(stream, {
        max: poll.maxEvents,
        acknowledged: poll.ack,
        refused: poll.setErrs,
        waitMillis: poll.returnImmediately ? 0 : waitSeconds * 1000,
        signal: request.signal,
      })
      const body = { sets: Object.fromEntries(tokens), ...(more ? { moreAvailable: true } : {}) }
      return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    },
  }),
})

async function readBody(request: GatewayRequest): Promise<JsonValue> {
  const type = header(request, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${type ?? ''}"`, {
      publicText: 'The body must be application/json.',
    })
  }
  return parseBoundedJson(await request.body(maxBody), bounds).value
}
