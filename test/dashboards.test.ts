import { readFileSync } from 'node:fs'
import { parser } from '@prometheus-io/lezer-promql'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { allMetrics } from '#testing/gateway/all-metrics.ts'

const alertsSchema = z.object({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Gatehouse[A-Z]\w+$/),
          expr: z.string(),
          for: z
            .string()
            .regex(/^\d+[mh]$/)
            .optional(),
          labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
          annotations: z.strictObject({ summary: z.string(), runbook: z.string() }),
        }),
      ),
    }),
  ),
})
const alerts = alertsSchema
  .parse(parse(readFileSync('deploy/prometheus/alerts.yaml', 'utf8')))
  .groups.flatMap(({ rules }) => rules)

const dashboardSchema = z.object({
  templating: z.object({ list: z.array(z.object({ name: z.string(), query: z.string() })) }),
  panels: z.array(
    z.object({
      id: z.number(),
      type: z.enum(['row', 'stat', 'timeseries']),
      title: z.string(),
      gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
      targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).default([]),
    }),
  ),
})
const dashboard = dashboardSchema.parse(JSON.parse(readFileSync('deploy/grafana/gatehouse.json', 'utf8')))

/** Labels that Prometheus adds to what it scrapes. */
const scraped = ['instance', 'job']
/** With workers, metrics of a process have it too. */
const ofProcess = 'worker'
const series = new Map<string, readonly string[]>([
  ['up', scraped],
  ...Array.from(allMetrics()).flatMap(([name, { type, labels }]): [string, readonly string[]][] => {
    const all = [...labels, ...scraped]
    if (type !== 'histogram') return [[name, all]]
    return [
      [`${name}_bucket`, [...all, 'le']],
      [`${name}_sum`, all],
      [`${name}_count`, all],
    ]
  }),
])

interface Query {
  readonly errors: readonly string[]
  readonly metrics: readonly string[]
  /** Of matchers and of `by`. */
  readonly labels: readonly string[]
  /** Of `by`: those that the result has. */
  readonly grouped: readonly string[]
}

function readQuery(text: string): Query {
  const found = { errors: [] as string[], metrics: [] as string[], labels: [] as string[], grouped: [] as string[] }
  parser.parse(text).iterate({
    enter: ({ name, type, from, to, node }) => {
      const part = text.slice(from, to)
      if (type.isError) found.errors.push(`${text}: at ${from}: ${part}`)
      if (name === 'Identifier') found.metrics.push(part)
      if (name === 'LabelName') found.labels.push(part)
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') found.grouped.push(part)
    },
  })
  return found
}

/** What is wrong with a query: its syntax, a metric that does not exist, or a label that none of its metrics has. */
function problemsOf(text: string): string[] {
  const { errors, metrics, labels } = readQuery(text)
  const known = new Set(metrics.flatMap((name) => series.get(name) ?? []))
  return [
    ...errors,
    ...(metrics.length === 0 ? [`${text}: no metric`] : []),
    ...metrics.filter((name) => !series.has(name)).map((name) => `${text}: no metric ${name}`),
    ...labels.filter((name) => !known.has(name)).map((name) => `${text}: no label ${name}`),
  ]
}

test('mistakes in queries are found', () => {
  expect(problemsOf('sum by (application) (rate(gatehouse_http_requests_total{status="500"}[5m]))')).toEqual([])
  for (const wrong of [
    'sum(rate(gatehouse_http_requests_total[5m])',
    'gatehouse_http_requests_total{status=}',
    'rate(gatehouse_http_requests_total[often])',
    'gatehouse_http_request_total',
    'gatehouse_http_request_seconds',
    'gatehouse_http_requests_total{target="a"}',
    'sum by (le) (gatehouse_http_requests_total)',
    '1 + 1',
  ]) {
    expect(problemsOf(wrong), wrong).not.toEqual([])
  }
})

describe('alerts', () => {
  test('use metrics and labels that exist', () => {
    expect(alerts.length).toBeGreaterThan(10)
    expect(alerts.flatMap(({ expr }) => problemsOf(expr))).toEqual([])
  })

  test('name only labels that their queries keep', () => {
    const wrong = alerts.flatMap(({ alert, expr, annotations }) => {
      const used = Array.from(annotations.summary.matchAll(/\$labels\.(\w+)/g), ([, name = '']) => name)
      const { grouped } = readQuery(expr)
      return used.filter((name) => !grouped.includes(name)).map((name) => `${alert}: ${name}`)
    })
    expect(wrong).toEqual([])
  })

  test('have unique names, and a runbook each, which says what to do', () => {
    const guide = readFileSync('docs/guides/observability.md', 'utf8')
    const runbooks = guide.slice(guide.indexOf('\n## Alerts\n'))
    const documented = Array.from(runbooks.matchAll(/^### (\w+)\n\n(.+)/gm), ([, name = '', text = '']) => [name, text])
    expect(documented.map(([name]) => name)).toEqual(alerts.map(({ alert }) => alert))
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length)
    for (const { alert, annotations } of alerts) {
      expect(annotations.runbook).toBe(`docs/guides/observability.md#${alert.toLowerCase()}`)
    }
  })
})

describe('the dashboard', () => {
  const variables = dashboard.templating.list.map(({ name }) => name)
  const queries = dashboard.panels.flatMap(({ targets }) => targets)

  test('uses metrics and labels that exist', () => {
    const plain = (expr: string): string => expr.replaceAll('$__rate_interval', '5m')
    expect(queries.length).toBeGreaterThan(20)
    expect(queries.flatMap(({ expr }) => problemsOf(plain(expr)))).toEqual([])
    const listed = dashboard.templating.list.flatMap(({ query }) => {
      const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? []
      return query === 'prometheus' || series.get(metric)?.includes(label) ? [] : [query]
    })
    expect(listed).toEqual([])
  })

  test('uses variables that it declares, and legends of labels that its queries keep', () => {
    const wrong = queries.flatMap(({ expr, legendFormat }) => {
      const used = Array.from(expr.matchAll(/\$(\w+)/g), ([, name = '']) => name).filter(
        (name) => !name.startsWith('__'),
      )
      const { grouped } = readQuery(expr)
      const shown = Array.from(legendFormat.matchAll(/\{\{(\w+)\}\}/g), ([, name = '']) => name)
      const kept = grouped.length === 0 ? [...scraped, ofProcess] : grouped
      return [...used.filter((name) => !variables.includes(name)), ...shown.filter((name) => !kept.includes(name))]
    })
    expect(wrong).toEqual([])
  })

  test('has panels with different ids and places', () => {
    const { panels } = dashboard
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
  })
})
