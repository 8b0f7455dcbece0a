import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, inject, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { objectPath } from '#testing/kubernetes/custom-resources.ts'
import { Helm, type Manifest } from '#testing/kubernetes/helm-chart.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { execCommands } from '#testing/release/exec-commands.ts'
import { ended, run } from '#testing/release/run-program.ts'
import { serving } from '#testing/release/served.ts'
import { type UnpackedImage, unpackImage } from '#testing/release/unpacked-image.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'

const { folder: released, scratch } = inject('release')
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const layout = join(released, 'image')
const chart = join(released, `chart/gatehouse-${version}.tgz`)
const isRoot = process.getuid?.() === 0
const quickstart = ['access', 'authentication', 'crm', 'login', 'people', 'portal'].map(
  (name) => `examples/quickstart/${name}.yaml`,
)

interface Deployment extends Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly args: readonly string[]
          readonly env: readonly { readonly name: string; readonly value?: string }[]
        }[]
      }
    }
  }
}

// Its files belong to other users, and it has a device.
test.skipIf(!isRoot)(
  'the image runs without a shell, as a user without rights, on files that it cannot change',
  async () => {
    const { root, platforms, config, environment, exec } = await unpackImage(layout, join(scratch, 'image'))
    expect(platforms).toEqual([
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux' },
    ])
    expect(['bin/sh', 'usr/bin/sh', 'bin/bash'].filter((file) => existsSync(join(root, file)))).toEqual([])
    expect(config.User).toBe('10001:10001')
    expect(
      await run('find', [root, '-user', '10001', '-not', '-path', `${root}/data*`, '-not', '-path', `${root}/tmp`]),
    ).toBe('')
    cpSync('examples/quickstart', join(root, 'etc/gatehouse/config'), { recursive: true })
    expect(environment).toMatchObject({ NODE_COMPILE_CACHE: '/tmp/compiled' })
    const url = `http://127.0.0.1:${await freePort()}`
    const env = { ...environment, GATEHOUSE_URL: url }
    const listen = ['--listen', new URL(url).host, '--metrics', 'off']
    const serve = ['serve', '--config', '/etc/gatehouse/config', '--data', '/data', ...listen]
    const [program, args] = exec(...config.Entrypoint, ...serve)
    await serving({ program, args, cwd: scratch, env, url }, async () => {
      const ada = await PortalPerson.logIn({ url }, 'ada')
      expect((await ada.get('/main/user')).json).toMatchObject({ uid: 'ada' })
      const subject = ['--issuer', `${url}/dev-issuer`, '--subject', 'idp', '--claim', 'role=crm']
      const mint = exec(...config.Entrypoint, 'token', 'mint', '--data', '/data', ...subject)
      const authorization = `Bearer ${(await run(...mint, scratch, env)).trim()}`
      const people = await fetch(`${url}/scim/people/Users?count=1`, { headers: { authorization } })
      expect(await people.json()).toMatchObject({ totalResults: 3 })
    })
  },
)

describe.skipIf(inject('helm') === undefined)('the packed chart', () => {
  const helm = new Helm(inject('helm') ?? '')

  test('is installed from its index, with the definitions', async () => {
    const index = readFileSync(join(released, 'chart/index.yaml'), 'utf8')
    expect(index).toContain((await run('sha256sum', [chart])).slice(0, 64))
    expect(await helm.run('show', 'chart', chart)).toContain(`version: ${version}`)
    const rendered = await helm.run('template', 'gatehouse', chart, '--include-crds')
    expect(rendered).toContain('kind: Deployment')
    expect(rendered.match(/^kind: CustomResourceDefinition$/gm)).toHaveLength(
      (await run('sh', ['-c', 'ls deploy/crds'])).trim().split('\n').length,
    )
  })

  test('has the alerts and the dashboard', async () => {
    const values = 'deploy/helm/gatehouse/ci/everything-values.yaml'
    const versions = ['monitoring.coreos.com/v1', 'gateway.networking.k8s.io/v1'].flatMap((api) => [
      '--api-versions',
      api,
    ])
    const rendered = await helm.run('template', 'gatehouse', chart, '--values', values, ...versions)
    expect(rendered).toContain('alert: GatehouseDown')
    expect(rendered).toContain('"panels"')
  })

  onKubernetes('on a cluster', (cluster) => {
    const namespace = 'gatehouse'
    const kubeconfig = ['--namespace', namespace, '--kubeconfig', cluster.connection.kubeconfig]
    const path = (object: Manifest) => objectPath(object.apiVersion, object.kind, namespace)

    // The pages use this namespace and this name.
    test.skipIf(!isRoot)('with the image serves the quickstart, and every documented exec works there', async () => {
      const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
      await cluster.must('POST', '/api/v1/namespaces', { metadata: { name: namespace, labels: restricted } })
      const image = await unpackImage(layout, join(scratch, 'pod'))
      const url = `http://127.0.0.1:${await freePort()}`
      const values = join(scratch, 'values.yaml')
      writeFileSync(values, JSON.stringify({ url, config: { values: { GATEHOUSE_URL: url } } }))
      await helm.run('install', 'gatehouse', chart, ...kubeconfig, '--values', values)
      const objects = quickstart.flatMap(objectsIn)
      expect(objects.length).toBeGreaterThan(20)
      for (const object of objects) await cluster.must('POST', `${path(object)}?fieldValidation=Strict`, object)

      const pod = await placePod(image, await cluster.token({ namespace, name: 'gatehouse' }))
      const metrics = `127.0.0.1:${await freePort()}`
      const args = pod.args.map((arg) =>
        arg.replace(/^--listen=.*/, `--listen=${new URL(url).host}`).replace(/^--metrics=.*/, `--metrics=${metrics}`),
      )
      const [program, words] = image.exec(...image.config.Entrypoint, ...args)
      const start = { program, args: words, cwd: scratch, env: pod.environment, url, readyAt: `http://${metrics}` }
      await serving(start, async () => {
        await until(async () => (await unready(objects)).length === 0, 60_000).catch(async () =>
          expect(await unready(objects)).toEqual([]),
        )
        await runDocumented(pod.environment, image)
      })
    })

    /** What the kubelet gives to a container of the installed Deployment. */
    async function placePod({ root, environment }: UnpackedImage, token: string) {
      const read = <T extends Manifest>(kind: string, name: string) => cluster.must<T>('GET', `${kind}/${name}`)
      const deployment = await read<Deployment>(`/apis/apps/v1/namespaces/${namespace}/deployments`, 'gatehouse')
      const map = await read(`/api/v1/namespaces/${namespace}/configmaps`, 'gatehouse-config')
      const place = (folder: string, files: Readonly<Record<string, string>>): void => {
        mkdirSync(join(root, folder), { recursive: true })
        for (const [name, text] of Object.entries(files)) writeFileSync(join(root, folder, name), text)
      }
      place('etc/gatehouse/config', map['data'] as Record<string, string>)
      const account = 'var/run/secrets/kubernetes.io/serviceaccount'
      place(account, { token, 'ca.crt': cluster.connection.ca, namespace })
      const { hostname, port } = new URL(cluster.connection.url)
      const [container] = deployment.spec.template.spec.containers
      const given = container?.env.map(({ name, value = 'gatehouse' }) => [name, value]) ?? []
      const host = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port }
      return { args: container?.args ?? [], environment: { ...environment, ...Object.fromEntries(given), ...host } }
    }

    /** The objects that are not served yet, and why. */
    async function unready(objects: readonly Manifest[]): Promise<string[]> {
      const said = await Promise.all(
        objects.map(async (object) => {
          type Status = { readonly status?: { readonly conditions: readonly { status: string; message: string }[] } }
          const { status } = await cluster.must<Status>('GET', `${path(object)}/${object.metadata.name}`)
          const [condition] = status?.conditions ?? []
          if (condition?.status === 'True') return []
          return [`${object.kind} ${object.metadata.name}: ${condition?.message ?? 'no status'}`]
        }),
      )
      return said.flat()
    }

    /** Runs each line as it is written. Only the way into the container is another one: there is no node. */
    async function runDocumented(environment: NodeJS.ProcessEnv, image: UnpackedImage): Promise<void> {
      const folder = join(scratch, 'operator')
      mkdirSync(folder)
      const [program, before] = image.exec()
      const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
      const words = ['/usr/bin/env', '-i', ...variables, `/usr/bin/${program}`, ...before].map((one) => `'${one}'`)
      const skip = 'until [ "$1" = -- ]; do shift; done; shift'
      writeFileSync(join(folder, 'kubectl'), `#!/bin/sh\n${skip}\nexec ${words.join(' ')} "$@"\n`)
      chmodSync(join(folder, 'kubectl'), 0o755)
      const sts = ['values-sts.yaml', 'ci/sts-values.yaml'].flatMap((file) => ['-f', `deploy/helm/gatehouse/${file}`])
      const notes = await helm.run('install', 'gatehouse', chart, ...kubeconfig, '--dry-run=client', ...sts)
      const commands = execCommands(notes.slice(notes.indexOf('\nNOTES:')))
      for (const { page, line } of commands) {
        const { code, stdout, stderr } = await ended('sh', ['-c', line], folder, {
          PATH: `${folder}:${process.env['PATH']}`,
        })
        console.log(`${code} ${page}: ${line}`)
        const { codes = [0], prints } = expected(line)
        expect({ page, line, code, stdout, stderr }).toEqual({
          ...{ page, line, stdout: expect.stringMatching(prints), stderr: expect.anything() },
          code: expect.toSatisfy((one: number) => codes.includes(one)),
        })
      }
      const copy = new DatabaseSync(join(folder, 'gatehouse.db'), { readOnly: true })
      expect(copy.prepare("select value from backup_info where name = 'version'").all()).toEqual([{ value: version }])
      expect(copy.prepare('pragma integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
      copy.close()
      expect(commands.map(({ page }) => page)).toEqual(
        expect.arrayContaining([
          'NOTES.txt',
          ...['hardening', 'deploying', 'backup-and-restore'].map((page) => `docs/guides/${page}.md`),
        ]),
      )
    }
  })
})

/** What a documented command must do. A page that names another command needs a line here. */
function expected(line: string): { readonly codes?: readonly number[]; readonly prints: RegExp } {
  const [, command = ''] = / -- gatehouse ([a-z]+(?: [a-z]+)?)/.exec(line) ?? []
  // The quickstart is not for production, which the check says.
  if (command === 'check') return { codes: [1], prints: /^ok {2}|^FAIL /m }
  if (command === 'keys list') return { prints: /./ }
  // It is in a file, which the test reads.
  if (command.startsWith('backup')) return { prints: /^$/ }
  throw new Error(`test/release does not say what "gatehouse ${command}" must print: ${line}`)
}

/** The objects of a file. The plug-in that they name is in the image; a seed must be in a folder of configuration, which a cluster lacks. */
function objectsIn(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((document) => {
    const { spec, ...object } = document.toJS() as Manifest & {
      readonly spec: { readonly params?: { readonly name: string; readonly value: unknown }[] }
    }
    const params = spec.params
      ?.filter(({ value }) => !String(value).startsWith('seed/'))
      .map((one) => (one.value === 'crm-target.js' ? { ...one, value: `/app/examples/quickstart/${one.value}` } : one))
    return { ...object, spec: params === undefined ? spec : { ...spec, params } }
  })
}
