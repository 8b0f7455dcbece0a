import { createServer, type Server, type Socket } from 'node:net'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { newBranch, openLdap, quietRequest as request } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'

async function started(): Promise<Slapd> {
  const slapd = await startSlapd()
  onTestFinished(() => slapd.stop())
  return slapd
}

/** A creation whose answer was lost exists on the next attempt, with the title of the lost one. */
function unlessThere(error: unknown): void {
  if (!(error instanceof GatewayError && error.code === 'CONFLICT')) throw error
}

const pause = (millis: number) => new Promise((resume) => setTimeout(resume, millis))

describe.skipIf(inject('slapd') === '')('an LDAP server that comes and goes', () => {
  test('killed and restarted under load: calls fail by name, work resumes automatically, and no acknowledged change is lost', async () => {
    const slapd = await started()
    const target = await openLdap(slapd, await newBranch(slapd))
    onTestFinished(() => void target.close?.())
    await target.createGroup('crew', {}, request)
    const acknowledged = new Map<string, string>()
    const failures: unknown[] = []
    let stopped = false
    let afterRestart = 0
    let down = false
    const workers = Array.from({ length: 8 }, async (_, worker) => {
      for (let i = 0; !stopped; i++) {
        const login = `w${worker}-${i % 20}`
        try {
          const user = userOf(login, { title: [`t${i}`] }, ['crew'])
          if (!acknowledged.has(login)) await target.createUser(user, ['title'], request).catch(unlessThere)
          await target.syncUser(user, syncOptions(['title']), request)
          acknowledged.set(login, `t${i}`)
          if (!down) afterRestart++
        } catch (error) {
          failures.push(error)
          acknowledged.delete(login)
          await pause(20)
        }
      }
    })
    await pause(500)
    for (let round = 0; round < 3; round++) {
      down = true
      await slapd.kill()
      await pause(700)
      await slapd.restart()
      afterRestart = 0
      down = false
      const since = performance.now()
      while (afterRestart === 0 && performance.now() - since < 6000) await pause(20)
      expect(afterRestart).toBeGreaterThan(0)
      await pause(300)
    }
    stopped = true
    await Promise.all(workers)
    expect(failures.length).toBeGreaterThan(0)
    const strange = failures.filter((error) => !(error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE'))
    expect(strange).toEqual([])
    expect(failures.every((error) => (error as Error).message !== '')).toBe(true)
    for (const [login, title] of acknowledged) {
      const user = await target.findUser(login, ['title'], request)
      expect([login, user?.attributes.values('title'), user?.groups]).toEqual([login, [title], ['crew']])
    }
    expect(acknowledged.size).toBeGreaterThan(10)
  }, 60_000)

  test('down from the start: each call reports it at once with a Retry-After, until the server is up', async () => {
    const slapd = await started()
    const branch = await newBranch(slapd)
    await slapd.kill()
    const target = await openLdap(slapd, branch)
    onTestFinished(() => void target.close?.())
    for (let i = 0; i < 5; i++) {
      const error = await Promise.resolve(target.lookupUserByLogin('ada')).catch((thrown) => thrown)
      expect(error).toMatchObject({ code: 'TARGET_UNREACHABLE', message: expect.stringContaining('target "people"') })
      expect(error.retryAfter).toBeGreaterThan(0)
    }
    await slapd.restart()
    const since = performance.now()
    let found: unknown = 'down'
    while (found === 'down' && performance.now() - since < 6000) {
      found = await Promise.resolve(target.lookupUserByLogin('ada')).catch(() => 'down')
      await pause(20)
    }
    expect(found).toBeUndefined()
  })

  test('connections that the server closes when idle are replaced silently', async () => {
    const slapd = await startSlapd({ settings: [] })
    onTestFinished(() => slapd.stop())
    const target = await openLdap(slapd, await newBranch(slapd))
    onTestFinished(() => void target.close?.())
    await target.createUser(userOf('ada'), [], request)
    await slapd.restart()
    await pause(50)
    await target.createUser(userOf('bob'), [], request)
    expect((await target.lookupUserByLogin('bob'))?.userID).toBe('bob')
  })
})

describe('a broken server', () => {
  async function listening(answer: (socket: Socket) => void) {
    const port = await freePort()
    const sockets = new Set<Socket>()
    const server: Server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      answer(socket)
    }).listen(port, '127.0.0.1')
    onTestFinished(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })
    const fake = { url: '', adminDn: 'cn=admin', adminPassword: 'secret' } as Slapd
    const target = await openLdap(fake, 'dc=x', { url: `ldap://127.0.0.1:${port}`, timeoutMillis: '300' })
    onTestFinished(() => void target.close?.())
    return target
  }

  const answers: Record<string, (socket: Socket) => void> = {
    'says nothing': () => {},
    'closes at once': (socket) => socket.end(),
    'speaks another language': (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    'promises a gigabyte': (socket) => socket.write(Buffer.from([0x30, 0x84, 0x40, 0, 0, 0, 2])),
    'answers with noise': (socket) => socket.on('data', () => socket.write(Buffer.alloc(4096, 0x30))),
  }
  for (const [what, answer] of Object.entries(answers)) {
    test(`${what}: unreachable, in time`, async () => {
      const target = await listening(answer)
      const since = performance.now()
      for (const call of [() => target.lookupUserByLogin('ada'), () => target.createUser(userOf('ada'), [], request)]) {
        await expect(call()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
      }
      expect(performance.now() - since).toBeLessThan(15_000)
    })
  }
})
