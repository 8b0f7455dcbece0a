import { Container } from '@mantine/core'
import { QueryClientProvider, useQuery } from '@tanstack/react-query'
import { CatchBoundary, type ErrorComponentProps, RouterProvider } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { configQuery, userQuery } from '../api/main.ts'
import { NoticeProvider } from '../components/notices.tsx'
import { Failure, Loading } from '../components/states.tsx'
import { ConfigProvider, personOf } from './config.tsx'
import { part } from './part.ts'
import { queryClient } from './query-client.ts'
import { router } from './router.tsx'
import { SessionGuard } from './session-guard.tsx'
import { settings } from './settings.ts'
import { portalColors } from './theme.ts'
import { Themed } from './themed.tsx'

const PublicRegistration = lazy(
  part(async () => ({ default: (await import('../pages/register/public-registration.tsx')).PublicRegistration })),
)

export function App() {
  return (
    <QueryClientProvider client={queryClient}>
      {settings.apis.main === undefined ? (
        <CatchBoundary getResetKey={() => ''} errorComponent={RegistrationFailure}>
          <Suspense>
            <PublicRegistration />
          </Suspense>
        </CatchBoundary>
      ) : (
        <Portal />
      )}
    </QueryClientProvider>
  )
}

/** The portal, after its user is known. */
function Portal() {
  const config = useQuery(configQuery)
  const user = useQuery(userQuery)
  const person = config.data && user.data && personOf(user.data, config.data)
  return (
    <Themed colors={config.data ?? portalColors}>
      <NoticeProvider>
        <SessionGuard warnMinutes={config.data?.warnMinutesLeft ?? 0} login={person?.login} />
        {config.data !== undefined && person !== undefined ? (
          <ConfigProvider config={config.data} person={person}>
            <RouterProvider router={router} />
          </ConfigProvider>
        ) : (
          <Waiting error={config.error ?? user.error} onRetry={() => void queryClient.invalidateQueries()} />
        )}
      </NoticeProvider>
    </Themed>
  )
}

function Waiting({ error, onRetry }: { readonly error: Error | null; readonly onRetry: () => void }) {
  return (
    <Container component="main" size="sm" py="xl">
      {error === null ? <Loading rows={6} /> : <Failure error={error} onRetry={onRetry} />}
    </Container>
  )
}

/** It is shown without themed parts around it. */
function RegistrationFailure({ error, reset }: ErrorComponentProps) {
  return (
    <Themed colors={portalColors}>
      <Waiting error={error instanceof Error ? error : new Error(String(error))} onRetry={reset} />
    </Themed>
  )
}
