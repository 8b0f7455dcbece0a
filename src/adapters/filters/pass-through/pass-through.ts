import { defineFilter, type FilterModule } from '#sdk/filter/filter.ts'
import { flag, text } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'

/**
 * Filters of OpenUnison that prepare a request for the application behind its reverse proxy, or only start something
 * that the gateway does itself. They are read, so that existing URLs load, and let every request pass: what protects a
 * URL is its chain and its rules.
 */
function passThrough(className: string, alias: string, parameters: ParameterTable, reason: string): FilterModule {
  return defineFilter({
    className,
    aliases: [alias],
    parameters,
    parse: (params, issues, context) => {
      readParameters(parameters, params, issues, context)
      issues.warning(params.pathOf('').slice(0, -1), `${className} has no effect here: ${reason}`)
    },
    answers: false,
    hasNoEffect: true,
    create: () => ({ handle: (_exchange, next) => next() }),
  })
}

export const xForward = passThrough(
  'filters.XForward',
  'com.tremolosecurity.proxy.filters.XForward',
  { createHeaders: flag({ about: 'Not used.' }) },
  'Gatehouse does not proxy, so no application receives X-Forwarded headers',
)

export const hideCookie = passThrough(
  'filters.HideCookie',
  'com.tremolosecurity.proxy.filters.HideCookie',
  {},
  'Gatehouse does not proxy, so there are no cookies of an application to hide',
)

export const mapUriRoot = passThrough(
  'filters.MapUriRoot',
  'com.tremolosecurity.proxy.filters.MapUriRoot',
  {
    newRoot: text({ about: 'Not used.' }),
    paramName: text({ about: 'Not used.' }),
  },
  'it maps the path of a proxied application, and Gatehouse does not proxy',
)

export const syncTlsKeys = passThrough(
  'filters.SyncTlsKeys',
  'com.tremolosecurity.proxy.filters.SetupSyncTLSKeys',
  {
    target: text({ about: 'Not used.' }),
    ns: text({ about: 'Not used.' }),
  },
  'keys are read from secrets, and read again when they change',
)
