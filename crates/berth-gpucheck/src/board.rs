//! What NVIDIA's management library says of the board: its link and its power.

use nvml_wrapper::Nvml;

pub struct Board {
    nvml: Nvml,
    uuid: String,
}

impl Board {
    /// Nothing where the library is not there, or does not know the GPU.
    pub fn open(uuid: &str) -> Option<Board> {
        let board = Board { nvml: Nvml::init().ok()?, uuid: uuid.to_owned() };
        board.device().is_some().then_some(board)
    }

    fn device(&self) -> Option<nvml_wrapper::Device<'_>> {
        self.nvml.device_by_uuid(self.uuid.as_str()).ok()
    }

    /// Whether MIG divides it. Then there is no whole GPU to check.
    pub fn is_divided(&self) -> bool {
        self.device().and_then(|gpu| gpu.mig_mode().ok()).is_some_and(|mode| mode.current == 1)
    }

    /// The PCIe generation and width that GPU and machine have together.
    pub fn best_link(&self) -> Option<(u32, u32)> {
        let gpu = self.device()?;
        Some((gpu.max_pcie_link_gen().ok()?, gpu.max_pcie_link_width().ok()?))
    }

    pub fn link_in_use(&self) -> Option<(u32, u32)> {
        let gpu = self.device()?;
        Some((gpu.current_pcie_link_gen().ok()?, gpu.current_pcie_link_width().ok()?))
    }

    /// The limit of its power and the usual one, in watts, where the first is lower.
    pub fn power_cap(&self) -> Option<(u32, u32)> {
        let gpu = self.device()?;
        let now = gpu.enforced_power_limit().ok()? / 1_000;
        let usual = gpu.power_management_limit_default().ok()? / 1_000;
        (now < usual).then_some((now, usual))
    }

    /// For a person who looks at steps: clock, temperature and power now.
    pub fn state(&self) -> String {
        let Some(gpu) = self.device() else { return String::new() };
        let clock = gpu.clock_info(nvml_wrapper::enum_wrappers::device::Clock::SM).ok();
        let power = gpu.power_usage().ok().map(|milliwatts| milliwatts / 1_000);
        let sensor = nvml_wrapper::enum_wrappers::device::TemperatureSensor::Gpu;
        let heat = gpu.temperature(sensor).ok();
        let told = |value: Option<u32>, unit: &str| value.map(|value| format!("{value} {unit}"));
        let all = [told(clock, "MHz"), told(power, "W"), told(heat, "°C")];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
