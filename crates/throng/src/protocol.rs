//! `throng protocol`: packets of a declared protocol, and the services of a gRPC server.

use throng_base::Exit;
use throng_packets::Ink;
use throng_packets::command::{Failure, ProtocolOptions, show};
use throng_packets::decode::Sinks;
use throng_run::reflect::write_descriptors;
use throng_scenario::bench::{Bench, to_reflect};
use throng_terminal::Screen;
use throng_terminal::screen::output;

use crate::Ended;
use crate::bench::metadata;

pub(crate) fn protocol(options: &ProtocolOptions) -> Ended {
    let screen = Screen::output(options.no_color);
    let errors = Screen::errors(options.no_color);
    let reflection = &options.reflection;
    if let Some(url) = &reflection.reflect {
        // A wrong URL is told before a wrong header.
        let bench = to_reflect(url).map_err(|told| errors.refused(&told))?;
        let bench = Bench {
            headers: metadata(&reflection.headers).map_err(|told| errors.refused(&told))?,
            verify_tls: reflection.insecure.then_some(false),
            ca: reflection.cacert.clone(),
            ..bench
        };
        let set = write_descriptors(&bench, reflection.output.as_deref(), &errors)?;
        set.iter().for_each(|set| output(set));
        return Ok(Exit::Success);
    }
    let ink = Ink { colour: screen.style.colour, width: screen.style.width };
    let (mut text, mut warn) = (|text: &str| screen.text(text), |said| errors.say(said));
    let sinks = Sinks { text: &mut text, warn: &mut warn };
    let shown = show(options, ink, sinks, |warnings| errors.diagnostics(warnings));
    let shown = shown.map_err(|failure| match failure {
        Failure::Refused(told) => errors.refused(&told),
        Failure::Mistakes(told) => errors.refused_all(&told),
    })?;
    shown.raw.iter().for_each(|raw| output(raw));
    Ok(if shown.fits { Exit::Success } else { Exit::ThresholdsNotMet })
}
