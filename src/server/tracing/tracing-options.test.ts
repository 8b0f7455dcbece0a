import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readTracingOptions, tracingVariables } from '#server/tracing/tracing-options.ts'

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

test('tracing is off without an endpoint, and where it is switched off', () => {
  expect(readTracingOptions({})).toBeUndefined()
  expect(readTracingOptions({ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' })).toBeUndefined()
  expect(readTracingOptions({ ...endpoint, OTEL_SDK_DISABLED: 'true' })).toBeUndefined()
  expect(readTracingOptions({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' })).toBeUndefined()
})

test('reads the variables of OpenTelemetry', () => {
  expect(readTracingOptions(endpoint)).toEqual({
    url: new URL('http://collector:4318/v1/traces'),
    headers: {},
    timeoutMillis: 10_000,
    sampling: { parentBased: true, ratio: 1 },
    resource: { 'service.name': 'gatehouse' },
  })
  expect(
    readTracingOptions({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/base/',
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20a%3Db,x-tenant=one',
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      OTEL_SERVICE_NAME: 'portal',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=ignored,deployment.environment.name=test',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
    }),
  ).toEqual({
    url: new URL('http://collector:4318/base/v1/traces'),
    headers: { authorization: 'Bearer a=b', 'x-tenant': 'one' },
    timeoutMillis: 500,
    sampling: { parentBased: true, ratio: 0.25 },
    resource: { 'service.name': 'portal', 'deployment.environment.name': 'test' },
  })
  const own = { ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example.com/otlp' }
  expect(readTracingOptions(own)?.url.href).toBe('https://traces.example.com/otlp')
  const sampling = (name: string) => readTracingOptions({ ...endpoint, OTEL_TRACES_SAMPLER: name })?.sampling
  expect(sampling('always_off')).toEqual({ parentBased: false, ratio: 0 })
  expect(sampling('parentbased_always_off')).toEqual({ parentBased: true, ratio: 0 })
})

test.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', 'must be an http:// or https:// address'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:secret@collector', 'must not contain a password'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'must be http/json; "grpc" is not supported'],
  ['OTEL_EXPORTER_OTLP_TIMEOUT', '0', 'must be a whole number of milliseconds from 1 to 60000'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'secret', 'must be a list of key=value, separated by commas'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%E0%A4%A', 'has a value for "a" that is not percent-encoded'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=secret%0D%0Ab', 'has a value for "a" that a header cannot contain'],
  ['OTEL_TRACES_EXPORTER', 'zipkin', 'must be otlp or none'],
  ['OTEL_TRACES_SAMPLER', 'jaeger_remote', 'must be one of always_on'],
])('refuses %s=%s', (name, value, text) => {
  const read = () => readTracingOptions({ ...endpoint, [name]: value })
  expect(read).toThrow(`${name} ${text}`)
  expect(read).not.toThrow('secret')
})

test('the guide has every variable, and no other', () => {
  const guide = readFileSync('docs/guides/observability.md', 'utf8')
  const documented = Array.from(guide.matchAll(/^\| `(OTEL_\w+)` \|/gm), ([, name]) => name)
  expect(documented.sort()).toEqual([...tracingVariables].sort())
})

test('refuses a ratio that is none', () => {
  for (const argument of ['2', '-1', 'half']) {
    const variables = { ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: argument }
    expect(() => readTracingOptions(variables)).toThrow('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')
  }
})
