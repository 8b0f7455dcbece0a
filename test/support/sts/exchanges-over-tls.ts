import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import type { CertificateWithKey } from '#config/configuration/sts-webhook.ts'

export interface ExchangeAnswer {
  readonly status: number | undefined
  /** The serial number of the served certificate. */
  readonly serial: string
}

/** One token exchange over TLS; without an agent over its own connection. */
export function exchangeOverTls(
  url: string,
  subjectToken: string,
  ca: readonly string[],
  agent: Agent | false,
): Promise<ExchangeAnswer> {
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: subjectToken,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const options = { method: 'POST', headers, ca: [...ca], agent, signal: AbortSignal.timeout(30_000) }
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber
      response
        .resume()
        .once('end', () => resolve({ status: response.statusCode, serial }))
        .once('error', reject)
    })
    sent.once('error', reject).end(form)
  })
}

/** Exchanges continuously, over kept and over new connections, until it is stopped. */
export function startExchanges(url: string, subjectToken: string, ca: readonly string[]) {
  const agents = [0, 1].map(() => new Agent({ keepAlive: true, maxSockets: 1 }))
  const answers = { kept: [] as ExchangeAnswer[], new: [] as ExchangeAnswer[] }
  const failures: string[] = []
  let stopped = false
  const work = async (agent: Agent | false): Promise<void> => {
    while (!stopped) {
      try {
        const answer = await exchangeOverTls(url, subjectToken, ca, agent)
        answers[agent === false ? 'new' : 'kept'].push(answer)
        if (answer.status !== 200) failures.push(`status ${answer.status}`)
      } catch (error) {
        failures.push(String(error))
      }
    }
  }
  const workers = [...agents, false as const, false as const].map(work)
  const stop = async (): Promise<void> => {
    stopped = true
    await Promise.all(workers)
    for (const agent of agents) agent.destroy()
  }
  return { answers, failures, stop }
}

/** Replaces the TLS files of a gateway process one after the other, so that for a short time they do not match. */
export function replaceCertificate(dataFolder: string, { certificate, privateKey }: CertificateWithKey): void {
  writeFileSync(join(dataFolder, 'listener.pem'), certificate)
  writeFileSync(join(dataFolder, 'listener-key.pem'), privateKey)
}
