import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { readPostgresAddress } from './postgres-address.ts'

describe('the address of a PostgreSQL', () => {
  test('with several hosts it is one address for each, and only a server that accepts writes is wanted', () => {
    const { servers, wanted, shown } = readPostgresAddress(
      'postgresql://gate:p%2Ca%40s@db1.example.com:5433,[2001:db8::7]:5434,10.0.0.3/portal?sslmode=verify-full&target_session_attrs=read-write',
    )
    expect(servers).toEqual([
      {
        name: 'db1.example.com:5433',
        url: 'postgresql://gate:p%2Ca%40s@db1.example.com:5433/portal?sslmode=verify-full',
      },
      { name: '[2001:db8::7]:5434', url: 'postgresql://gate:p%2Ca%40s@[2001:db8::7]:5434/portal?sslmode=verify-full' },
      { name: '10.0.0.3', url: 'postgresql://gate:p%2Ca%40s@10.0.0.3/portal?sslmode=verify-full' },
    ])
    expect(wanted).toBe('read-write')
    expect(shown).toBe('db1.example.com:5433,[2001:db8::7]:5434,10.0.0.3/portal')
    const clients = servers.map(({ url }) => new pg.Client({ connectionString: url }))
    expect(clients.map(({ host, port, user, password, database }) => [host, port, user, password, database])).toEqual([
      ['db1.example.com', 5433, 'gate', 'p,a@s', 'portal'],
      ['2001:db8::7', 5434, 'gate', 'p,a@s', 'portal'],
      ['10.0.0.3', 5432, 'gate', 'p,a@s', 'portal'],
    ])
  })

  test.each([
    ['postgres://db.example.com/gatehouse', 'any'],
    ['postgres://db.example.com/gatehouse?target_session_attrs=primary', 'primary'],
    ['postgres://one,two/gatehouse', 'read-write'],
    ['postgres://one,two/gatehouse?target_session_attrs=any', 'any'],
  ])('%s wants %s', (url, wanted) => {
    expect(readPostgresAddress(url).wanted).toBe(wanted)
  })

  test.each([
    'postgres://db.example.com',
    'postgres://gate:it%27s,@db.example.com:5432/gatehouse?options=-c search_path=x',
    'postgres:///gatehouse?host=/run/postgresql',
    'postgres://%2Frun%2Fpostgresql/gatehouse',
    'postgres://gate@/gatehouse?host=/run/postgresql',
  ])('%s stays as it is', (url) => {
    expect(readPostgresAddress(url).servers.map((server) => server.url)).toEqual([url])
  })

  test.each([
    ['mysql://db/x', /starts with postgres:\/\//],
    ['postgres://gate:hunter2@one,,two/x', /^host 2 of the address must be a name/],
    ['postgres://gate:hunter2@one,two:port/x', /^host 2 of the address/],
    ['postgres://gate:hunter2@one,2001:db8::7/x', /^host 2 .*IPv6 address in brackets/],
    ['postgres://gate:hunter2@one:99999/x', /^the host of the address/],
    ['postgres://gate:hunt/er2@one/x', /^the host .* %2F/],
    ['postgres://gate:5432/hunter2@one/x', /of a password or a name are written as %2F/],
    ['postgres://gate:hunter2@one,$(reboot)/x', /^host 2/],
    [`postgres://gate:hunter2@${Array.from({ length: 17 }, (_, i) => `h${i}`).join(',')}/x`, /more than 16 hosts/],
    ['postgres://gate:hunter2@/x?host=one,two', /several hosts must be before the name of the database/],
    ['postgres://gate:hunter2@one,two/x?host=three', /several hosts must be before/],
    ['postgres://gate:hunter2@one,two/x?target_session_attrs=standby', /must be read-write, primary or any/],
  ])('%s is refused without showing it', (url, message) => {
    expect(() => readPostgresAddress(url)).toThrow(message)
    expect(() => readPostgresAddress(url)).not.toThrow(/hunt/)
  })
})
