/** A kind of tests with the real parts that it needs. `vitest.config.ts` has a project for each one with test files. */
export interface Tier {
  readonly name: string
  /** Its test files. A tier without them is a program. */
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  /** Only these files of a project with another name. */
  readonly partOf?: { readonly project: string; readonly files: readonly string[] }
  /** The program and its arguments. */
  readonly program?: readonly string[]
  /** Part of `npm test`, so it needs nothing but npm. */
  readonly isCore: boolean
  /** What must be installed beside npm. */
  readonly needs?: string
  /** In the share of cores. Tests with real servers mostly wait for them. */
  readonly workers?: string
  /** Node.js loads the files itself, which takes a fifth less time than Vite. */
  readonly isNative?: boolean
  /** Starts gateways from the bundle of a release. */
  readonly usesBundle?: boolean
  /** Waits for the environment of the SCIM validators in Python. */
  readonly usesPython?: boolean
  /** Waits for the programs of `test/kube/build.ts`. */
  readonly usesBuiltPrograms?: boolean
}

/** What the parts of the product do together, on a machine with npm alone: the stories of `npm test`. */
export const coreStories: readonly string[] = [
  'test/stories/scim-clients/clients.test.ts',
  'test/stories/scim-clients/init.test.ts',
  'test/stories/call-workflow.test.ts',
  'test/stories/registration.test.ts',
  'test/stories/main-api.test.ts',
  'test/stories/login.test.ts',
  'test/stories/hostile/survival.test.ts',
  'test/stories/quickstart.test.ts',
  'test/stories/readme.test.ts',
  'test/stories/predecessor-tutorial/tutorial.test.ts',
  'test/stories/specification-token-service.test.ts',
  'test/stories/token-exchange-clients.test.ts',
  'test/stories/token-service.test.ts',
  'test/stories/two-gateways.test.ts',
]

const realParts = ['src/**/*.conformance.test.ts', 'src/**/*.programs.test.ts', 'src/**/*.kube.test.ts'] as const

/** In the order in which they start: what fails soon comes first, what takes long next. */
export const tiers: readonly Tier[] = [
  { name: 'types', program: ['node_modules/typescript/bin/tsc', '--noEmit'], isCore: true },
  { name: 'portal-types', program: ['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'portal'], isCore: true },
  { name: 'lint', program: ['node_modules/@biomejs/biome/bin/biome', 'check', '.'], isCore: true },
  {
    name: 'core',
    partOf: { project: 'stories', files: coreStories },
    isCore: true,
    workers: '100%',
    isNative: true,
    usesBundle: true,
  },
  {
    name: 'stories',
    include: ['test/stories/**/*.test.ts'],
    isCore: false,
    needs: 'slapd and ldap-utils, postgresql, python3-venv',
    workers: '100%',
    isNative: true,
    usesBundle: true,
    usesPython: true,
  },
  {
    name: 'unit',
    include: ['src/**/*.test.ts', 'test/*.test.ts', 'bench/*.test.ts'],
    exclude: realParts,
    isCore: true,
    workers: '100%',
    isNative: true,
  },
  // The portal is a package of its own, which needs Vite.
  { name: 'portal', include: ['portal/**/*.test.ts'], isCore: true, workers: '100%' },
  {
    name: 'conformance',
    include: ['src/**/*.conformance.test.ts'],
    isCore: true,
    workers: '100%',
    isNative: true,
  },
  {
    name: 'browser',
    include: ['test/browser/**/*.browser.test.ts'],
    isCore: false,
    needs: 'chromium-headless-shell',
    workers: '100%',
    isNative: true,
    usesBundle: true,
  },
  {
    name: 'programs',
    include: ['src/**/*.programs.test.ts'],
    isCore: false,
    needs: 'curl, openssl, dash, busybox, shellcheck, zsh, fish, promtool',
    workers: '50%',
    isNative: true,
  },
  {
    name: 'kube',
    include: ['src/**/*.kube.test.ts', 'test/kube/**/*.kube.test.ts'],
    isCore: false,
    needs: 'etcd-server, and Go to build an API server, helm and Vault',
    workers: '100%',
    isNative: true,
    usesBundle: true,
    usesBuiltPrograms: true,
  },
  {
    name: 'release',
    include: ['test/release/**/*.release.test.ts'],
    isCore: false,
    needs: 'etcd-server, groff-base, systemd, rpm, and Go to build an API server, helm and nfpm',
    workers: '100%',
    isNative: true,
    usesBuiltPrograms: true,
  },
  {
    name: 'chaos',
    program: ['test/chaos/run.ts', '--short'],
    isCore: false,
    needs: 'postgresql for failovers, and two minutes',
  },
]
