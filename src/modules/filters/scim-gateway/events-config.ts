import type { Issues } from '#kernel/issues.ts'
import type { EventPayload } from '#protocols/scim/security-events.ts'
import type { EventStreamOptions } from '#sdk/event-stream.ts'
import type { ParsedParameters } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { parameterTable } from './parameter-table.ts'

export interface EventsConfig {
  readonly stream: EventStreamOptions
  readonly payload: EventPayload
}

const others = ['eventsIssuer', 'eventsAudience', 'eventsPushUrl', 'eventsPushToken', 'eventsKey', 'eventsPayload']

/** Undefined where the gateway tells no events; parameters that then have no effect are errors. */
export function readEvents(
  values: ParsedParameters<typeof parameterTable>,
  params: Params,
  issues: Issues,
): EventsConfig | undefined {
  const given = (name: string): boolean => params.values(name).some((value) => value !== '')
  if (values.events === undefined) {
    if (given('events')) return undefined
    for (const name of others.filter(given)) {
      issues.error(params.pathOf(name), `parameter "${name}" needs the parameter "events"`)
    }
    return undefined
  }
  const missing = ['eventsIssuer', 'eventsAudience'].filter((name) => !given(name))
  for (const name of missing) issues.error(params.pathOf(name), `parameter "${name}" is required with "events"`)
  const { eventsPushUrl: url, eventsPushToken: token } = values
  if (given('eventsPushToken') && !given('eventsPushUrl')) {
    issues.error(params.pathOf('eventsPushToken'), 'parameter "eventsPushToken" needs the parameter "eventsPushUrl"')
  }
  return {
    payload: values.eventsPayload,
    stream: {
      name: values.events,
      issuer: values.eventsIssuer ?? '',
      audience: values.eventsAudience ?? '',
      key: values.eventsKey ?? defaultEventsKey,
      ...(url === undefined ? {} : { push: { url, ...(token === undefined ? {} : { token }) } }),
    },
  }
}

export const defaultEventsKey = 'scim-events'
