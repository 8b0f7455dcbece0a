import { expect, test } from 'vitest'
import { pictureUri, readIcon, readPictureUri } from './picture.ts'

const svg = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0h9"/></svg>'
const png = Buffer.from('89504e470d0a1a0a00', 'hex')

test('a picture gets the type of its content', () => {
  expect(pictureUri(png)).toBe(`data:image/png;base64,${png.toString('base64')}`)
  expect(pictureUri(Buffer.from('ffd8ffe0', 'hex'))).toContain('data:image/jpeg;')
  expect(pictureUri(Buffer.from('RIFF0000WEBP'))).toContain('data:image/webp;')
  expect(pictureUri(Buffer.from(`<?xml version="1.0"?>\n${svg}`))).toContain('data:image/svg+xml;')
})

test.each(['', 'GIF89a', '<html><body></body></html>', 'svg', 'text <svg></svg>'])('%j is not a picture', (text) => {
  expect(() => pictureUri(Buffer.from(text))).toThrow('is not a PNG, JPEG, WebP or SVG picture')
})

test('a picture has at most 64 KB', () => {
  expect(() => pictureUri(Buffer.concat([png, Buffer.alloc(65_536)]))).toThrow('larger than 64 KB')
  expect(() => readPictureUri(`data:image/png,${'a'.repeat(300_000)}`)).toThrow('larger than 64 KB')
})

test('a data URI is read in base64 and percent-encoded', () => {
  const base64 = `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`
  expect(readPictureUri(base64)).toBe(base64)
  expect(readPictureUri(`data:image/svg+xml,${encodeURIComponent(svg)}`)).toBe(base64)
})

test.each([
  ['data:text/html,<b>', 'is not a PNG'],
  [`data:image/png;base64,${Buffer.from(svg).toString('base64')}`, 'not a picture of the type image/png'],
  ['data:image/svg+xml,%zz', 'percent-encoding'],
  ['https://example.com/logo.svg', 'is not a data URI'],
])('%s is refused', (written, message) => {
  expect(() => readPictureUri(written)).toThrow(message)
})

test('an icon is a PNG in bare base64 or a data URI', () => {
  expect(readIcon(' iVBORw0KGgo\n AAAA ')).toBe('iVBORw0KGgoAAAA')
  expect(readIcon(`data:image/svg+xml,${encodeURIComponent(svg)}`)).toMatch(/^data:image\/svg\+xml;base64,/)
  expect(() => readIcon('"><script>')).toThrow('is not a PNG')
})
