import * as z from 'zod'
import type { JsonBounds } from '#kernel/bounded-json.ts'
import { jsonBody } from '#kernel/json.ts'
import { placeAtSegment } from '#sdk/api/api-description.ts'
import { readJsonBody } from '#sdk/api/json-body.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import type { EventStreams } from './event-streams.ts'

/** What this filter uses beside what every filter may use. */
interface PollHost extends FilterHost {
  readonly eventStreams: Pick<EventStreams, 'poll'>
}

const maxBody = 512 * 1024
/** Acknowledged ids and errors are limited by the reader of a poll. */
const bounds: JsonBounds = { depth: 8, members: 2_000, elements: 2_000, values: 20_000 }

/** Serves the events of one stream to a polling receiver (RFC 8936) until the receiver acknowledges them. */
export default defineFilter({
  className: 'filters.EventPoll',
  ...withParameters({
    stream: text({
      about: 'The stream, as the parameter `events` of a [gateway](filters.ScimGateway.md) names it.',
      required: true,
    }),
    waitSeconds: wholeNumber({
      about: 'How long a poll without `returnImmediately` waits for an event.',
      fallback: 30,
      max: 50,
    }),
  }),
  answers: true,
  summarize: ({ stream }) => [{ label: 'events', value: stream }],
  api: () => eventPollApi.served(placeAtSegment),
  create: ({ stream, waitSeconds }, { eventStreams }: PollHost) =>
    eventPollApi.filter({ stream, waitSeconds, eventStreams }),
})

interface PolledStream extends Pick<PollHost, 'eventStreams'> {
  readonly stream: string
  readonly waitSeconds: number
}

async function answerPoll(
  { stream, waitSeconds, eventStreams }: PolledStream,
  { request }: Exchange,
): Promise<GatewayResponse> {
  const poll = await readJsonBody(request, pollSchema, maxBody, bounds)
  const refused = Object.entries(poll.setErrs).map(
    ([id, { err: error, description }]) => [id, { error, description }] as const,
  )
  const { tokens, more } = await eventStreams.poll(stream, {
    max: poll.maxEvents,
    acknowledged: poll.ack,
    refused: new Map(refused),
    waitMillis: poll.returnImmediately ? 0 : waitSeconds * 1000,
    signal: request.signal,
  })
  const body = { sets: Object.fromEntries(tokens), ...(more ? { moreAvailable: true } : {}) }
  return { status: 200, headers: { 'content-type': 'application/json' }, body: jsonBody(body) }
}

/** The maximum number of tokens in one response, and the default. */
const maxEvents = 200
const defaultEvents = 100
const maxIds = 1000
const maxErrorText = 200

const tokenId = z.string().min(1).max(256)
const errorText = z.string().transform((text) => text.slice(0, maxErrorText))

/** A poll of RFC 8936 2.2. Unknown members are ignored. */
const pollSchema = z.object({
  maxEvents: z
    .int()
    .min(0)
    .default(defaultEvents)
    .transform((count) => Math.min(count, maxEvents)),
  returnImmediately: z.boolean().default(false),
  ack: z.array(tokenId).max(maxIds).default([]),
  setErrs: z
    .record(tokenId, z.object({ err: errorText, description: errorText.catch('') }))
    .refine((errors) => Object.keys(errors).length <= maxIds, `has more than ${maxIds} token ids`)
    .default({}),
})

export const eventPollApi = new ServedApi<PolledStream>({
  title: 'Event poll API',
  version: '1.0.0',
  answers: {
    PollAnswer: z.object({
      sets: z.record(z.string(), z.string()).describe('Security event tokens (signed JWTs), by id'),
      moreAvailable: z.boolean().optional(),
    }),
    Errors: mainErrors,
  },
  bodies: { Poll: pollSchema },
  failure: { description: 'What is wrong', schema: 'Errors' },
  operations: {
    poll: {
      route: 'POST',
      summary: 'Acknowledges events and returns the next ones (RFC 8936)',
      description: 'Events are returned until they are acknowledged.',
      body: 'Poll',
      answer: 'PollAnswer',
      handle: answerPoll,
    },
  },
})
