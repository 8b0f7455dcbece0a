import { expect, test } from 'vitest'
import { plot } from './plot.ts'

test('each series is a line from the first to the last minute, over zero', () => {
  const svg = plot('Soak', [0, 5, 10], [{ title: 'Memory', unit: 'MB', values: [50, 100, 0] }])
  const [, points = ''] = /<polyline points="([^"]+)"/.exec(svg) ?? []
  expect(points).toBe('90.0,106.0 435.0,66.0 780.0,146.0')
  expect(svg).toContain('100 MB')
  expect(svg).toContain('10 minutes')
})

test('titles are escaped, and no samples draw nothing', () => {
  const svg = plot('a < b & "c"', [], [{ title: '<p99>', unit: 'ms', values: [] }])
  expect(svg).toContain('a &#60; b &#38; &#34;c&#34;')
  expect(svg).not.toContain('<p99>')
  expect(svg).not.toMatch(/NaN|Infinity/)
})
