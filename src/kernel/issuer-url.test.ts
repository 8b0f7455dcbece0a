import { describe, expect, test } from 'vitest'
import { parseIssuerUrl } from '#kernel/issuer-url.ts'

describe('parseIssuerUrl', () => {
  test.each([
    'https://issuer.example.com',
    'https://issuer.example.com:8443/realms/a/',
    'http://127.0.0.1:8080/dev-issuer',
    'http://127.9.9.9',
    'http://[::1]:8080',
    'http://localhost:8080',
  ])('accepts %s', (text) => {
    expect(parseIssuerUrl(text).href).toContain('://')
  })

  test.each([
    ['http://issuer.example.com', /this machine only/],
    ['http://127.0.0.1.example.com', /this machine only/],
    ['http://127.example.com', /this machine only/],
    ['http://localhost.example.com', /this machine only/],
    ['http://10.0.0.1', /this machine only/],
    ['ftp://127.0.0.1', /https/],
    ['issuer', /absolute URL/],
    ['https://user:pw@issuer.example.com', /password/],
    ['https://issuer.example.com/?a=b', /query/],
    ['https://issuer.example.com/?', /query/],
    ['https://issuer.example.com/#a', /fragment/],
  ])('refuses %s', (text, reason) => {
    expect(() => parseIssuerUrl(text)).toThrow(reason)
  })
})
